//! The only crate of lastmile with system calls.
