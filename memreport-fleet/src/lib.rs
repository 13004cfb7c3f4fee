//! Memory of a fleet: snapshots of many processes as Parquet files on object storage.
//!
//! This crate is the program `memreport-fleet`, which `about-memory export --to parquet`,
//! `about-memory agent` and `about-memory fleet` start. It is a package of its own, so that nobody
//! else builds what it needs.
//!
//! ```text
//! reports, dumps, recordings ──gather──▶ rows ──table──▶ Parquet ──▶ dataset
//! served programs ──agent──▶ spool ──▶ object store ──▶ dataset
//! dataset ──query──▶ (a local copy) ──▶ an installed engine ──▶ tables, JSON, Markdown
//! ```
//!
//! * [`schema`] defines the tables, [`table`] their rows in memory and as files, [`dataset`] the
//!   paths of the files.
//! * [`gather`] turns reports, dumps and recordings into rows of a [`resource`].
//! * [`otlp`] writes dumps as profiles of OpenTelemetry.
//! * [`symbols`] looks up the stacks of each build once.
//! * [`store`] is where files go to and come from: a folder, or a store of a cloud.
//! * [`query`] runs the questions of `sql/` with an engine that is installed.
//! * [`agent`] ships snapshots of the served programs of a host.
//! * [`command`] has one file for each subcommand.

pub mod schema;
pub mod table;
pub mod resource;
pub mod dataset;
pub mod gather;
pub mod otlp;
pub mod symbols;
pub mod store;
pub mod query;
pub mod agent;
pub mod command;

pub use command::{Cli, is_started_by_about_memory};
