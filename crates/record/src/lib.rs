//! Calls into the ledger: the recorder's state machine, files and standard input.
