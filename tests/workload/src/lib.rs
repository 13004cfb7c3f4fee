//! The work that the overhead benchmark times: the same in every program, whatever its allocator.

mod numbers;
mod processor;
mod maps;
mod json;
mod churn;
mod live;
mod beside;
mod run;

pub use json::write_text;
pub use numbers::Numbers;
pub use processor::time as processor_time;
pub use run::run;
