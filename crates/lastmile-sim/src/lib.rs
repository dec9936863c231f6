//! The network as nodes, in virtual time.
