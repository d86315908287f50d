//! What changed between two contracts: changed places and the rename map.
