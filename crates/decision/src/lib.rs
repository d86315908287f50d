//! What the record proves: plans, tallies, verdict.
