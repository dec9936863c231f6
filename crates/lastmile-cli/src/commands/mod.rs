//! One file per command, each with its `Args` and its `run`.
pub(crate) mod accuracy;
pub(crate) mod bench_sim;
pub(crate) mod completions;
pub(crate) mod conformance;
pub(crate) mod demo;
pub(crate) mod doctor;
pub(crate) mod lab;
pub(crate) mod man;
pub(crate) mod measure;
pub(crate) mod registries;
pub(crate) mod replay;
pub(crate) mod report;
pub(crate) mod reproduce;
pub(crate) mod scenarios;
pub(crate) mod serve;
pub(crate) mod sim;
pub(crate) mod sweep;
