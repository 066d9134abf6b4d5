//! Helpers of all tests: random programs and graphs, oracles, double-double arithmetic.
#![allow(dead_code, unused_imports)] // Each test program uses a part.

pub mod corpus;
pub mod derivatives;
pub mod double_double;
pub mod double_double_graphs;
pub mod functions;
pub mod fuzz;
pub mod graph_loops;
pub mod graphs;
pub mod numbers;
pub mod outcomes;
pub mod programs;
pub mod random_programs;
pub mod rolling;
pub mod series;
pub mod served;
pub mod ulp;
pub mod vector_programs;
