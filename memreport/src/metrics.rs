//! Writes reports as metrics in the OpenMetrics text format, for Prometheus and compatible readers.
//!
//! ```
//! // In a handler of any HTTP server, for the path `/metrics`:
//! let (content_type, body) = (memreport::metrics::CONTENT_TYPE, memreport::metrics::gather());
//! assert!(body.ends_with("# EOF\n"));
//! # assert!(content_type.starts_with("application/openmetrics-text"));
//! ```

use std::collections::BTreeMap;
use std::fmt;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::{Registry, Unit};

use crate::report::{Kind, Report, Units};
use crate::snapshot::HEAP_UNCLASSIFIED_OR_MISSED;

/// The content type of the text.
pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// The most paths with a series of their own, the largest ones. The others share the path
/// `<other>`.
pub const MAX_PATHS: usize = 50;

/// The most single figures with a series of their own, besides the process figures: the first in
/// the order of their names.
pub const MAX_FIGURES: usize = 50;

/// Takes a snapshot and writes it as metrics. A scrape costs as much as a collection.
///
/// # Panics
///
/// Panics if a reporter calls it, because collections do not nest.
#[must_use]
pub fn gather() -> String {
    text(&crate::snapshot().reports)
}

/// Writes the reports of one process as metrics.
///
/// They are single figures of the process and of the program's own, and the sums of the tree
/// `explicit` for each path of two segments. The series of `memreport_reported_bytes` never
/// overlap, so they can be added up. If reporters were missed,
/// `explicit/heap-unclassified-or-missed` takes the place of `explicit/heap-unclassified`.
#[must_use]
pub fn text(reports: &[Report]) -> String {
    let mut registry = Registry::default();
    registry.register_collector(Box::new(Figures::of(reports)));
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = prometheus_client::encoding::text::encode(&mut text, &registry);
    text
}

/// Figures of the process: the report's path, the metric's name without its unit, and its help.
const BYTES: [(&str, &str, &str); 8] = [
    ("resident", "process_resident_memory", "Memory in physical memory, shared pages included"),
    ("vsize", "process_virtual_memory", "Address space, used or not"),
    ("resident-peak", "memreport_resident_peak", "The most that was ever resident"),
    (
        "resident-unique",
        "memreport_resident_unique",
        "Resident memory that no other process shares",
    ),
    ("pss", "memreport_pss", "Resident memory, shared pages divided by those who share them"),
    ("swap", "memreport_swap", "Memory that was written to swap"),
    ("heap-allocated", "memreport_heap_allocated", "Memory in live blocks of the heap allocator"),
    (
        "heap-committed",
        "memreport_heap_committed",
        "Memory that the heap allocator has of the system",
    ),
];

/// The values that are written, each figure once.
#[derive(Debug, Default)]
struct Figures {
    /// Bytes by the report's path.
    bytes: BTreeMap<&'static str, i64>,
    threads: Option<i64>,
    overhead: Option<i64>,
    allocations: Option<i64>,
    /// Hard and soft page faults.
    faults: [Option<i64>; 2],
    /// Sums by path and kind.
    reported: Vec<(String, &'static str, i64)>,
    /// Single figures of the program's own by name, and for each the sum of its reports.
    of_the_program: BTreeMap<String, (Units, i64)>,
}

impl Figures {
    fn of(reports: &[Report]) -> Self {
        let mut figures = Figures::default();
        let mut reported = Reported::default();
        for report in reports {
            let amount = report.amount;
            match (report.units, report.path.as_str()) {
                (Units::Count, "threads") => figures.threads = Some(amount),
                (Units::Percentage, "heap-overhead-fraction") => figures.overhead = Some(amount),
                (Units::CountCumulative, "heap-allocations") => figures.allocations = Some(amount),
                (Units::CountCumulative, "page-faults-hard") => figures.faults[0] = Some(amount),
                (Units::CountCumulative, "page-faults-soft") => figures.faults[1] = Some(amount),
                (Units::Bytes, path) if path.starts_with("explicit/") => reported.add(report),
                (Units::Bytes, path) if figures.add_bytes(path, amount) => {}
                (_, path) if !path.contains('/') => figures.add_of_the_program(report),
                _ => {}
            }
        }
        figures.reported = reported.into_series(figures.bytes.get("heap-allocated").copied());
        figures
    }

    /// Adds bytes at or below the path of a figure of the process. Returns whether there is one.
    fn add_bytes(&mut self, path: &str, amount: i64) -> bool {
        let top = path.split('/').next().unwrap_or(path);
        let of = BYTES
            .iter()
            .find(|(known, ..)| *known == path || *known == top && top == "heap-committed");
        if let Some((known, ..)) = of {
            *self.bytes.entry(known).or_default() += amount;
        }
        of.is_some()
    }

    fn add_of_the_program(&mut self, Report { path, units, amount, .. }: &Report) {
        let (known, sum) = self.of_the_program.entry(path.clone()).or_insert((*units, 0));
        // Figures of one name and several units are the first's.
        if known == units {
            *sum = sum.saturating_add(*amount);
        }
    }
}

/// The sums below `explicit`, by the first two segments and by whether they are on the heap.
#[derive(Debug, Default)]
struct Reported {
    sums: BTreeMap<(String, &'static str), i64>,
    heap: i64,
    /// The bytes that no reporter names, if some reporter was missed.
    or_missed: Option<i64>,
}

impl Reported {
    fn add(&mut self, report: &Report) {
        if report.path == HEAP_UNCLASSIFIED_OR_MISSED {
            self.or_missed = Some(report.amount);
            return;
        }
        let end = report.path.match_indices('/').nth(1).map_or(report.path.len(), |(end, _)| end);
        let kind = match report.kind {
            Kind::Heap => "heap",
            _ => "nonheap",
        };
        if report.kind == Kind::Heap {
            self.heap += report.amount;
        }
        *self.sums.entry((report.path[..end].to_owned(), kind)).or_default() += report.amount;
    }

    /// Returns the largest paths, the sum of the others, and `heap-unclassified`.
    fn into_series(self, allocated: Option<i64>) -> Vec<(String, &'static str, i64)> {
        let mut series: Vec<_> =
            self.sums.into_iter().map(|((path, kind), bytes)| (path, kind, bytes)).collect();
        // Equal amounts keep the order of their paths.
        series.sort_by_key(|(_, _, bytes)| std::cmp::Reverse(*bytes));
        let others = series.split_off(series.len().min(MAX_PATHS));
        for kind in ["heap", "nonheap"] {
            let of_kind = || others.iter().filter(|(_, of, _)| *of == kind);
            if of_kind().next().is_some() {
                let sum = of_kind().map(|(_, _, bytes)| bytes).sum();
                series.push(("<other>".to_owned(), kind, sum));
            }
        }
        match (self.or_missed, allocated) {
            (Some(bytes), _) => {
                series.push((HEAP_UNCLASSIFIED_OR_MISSED.to_owned(), "heap", bytes));
            }
            (None, Some(allocated)) => {
                let bytes = allocated - self.heap;
                series.push(("explicit/heap-unclassified".to_owned(), "heap", bytes));
            }
            (None, None) => {}
        }
        series
    }
}

impl Collector for Figures {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        for (path, name, help) in BYTES {
            if let Some(bytes) = self.bytes.get(path) {
                metric(&mut encoder, (name, help, Some(&Unit::Bytes)), &ConstGauge::new(*bytes))?;
            }
        }
        if let Some(threads) = self.threads {
            metric(
                &mut encoder,
                ("process_threads", "Threads of the process", None),
                &ConstGauge::new(threads),
            )?;
        }
        if let Some(hundredths) = self.overhead {
            let help =
                "Of the heap memory of live blocks and the allocator's overhead, the overhead";
            let unit = Unit::Other("ratio".to_owned());
            metric(
                &mut encoder,
                ("memreport_heap_overhead", help, Some(&unit)),
                &ConstGauge::new(ratio(hundredths)),
            )?;
        }
        if let Some(allocations) = self.allocations {
            let help = "Blocks that the heap allocator has handed out";
            let counter = ConstCounter::new(cumulative(allocations));
            metric(&mut encoder, ("memreport_heap_allocations", help, None), &counter)?;
        }
        self.encode_faults(&mut encoder)?;
        self.encode_reported(&mut encoder)?;
        self.encode_of_the_program(&mut encoder)
    }
}

impl Figures {
    fn encode_faults(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let counters = ["hard", "soft"].into_iter().zip(self.faults);
        let known: Vec<_> = counters
            .filter_map(|(kind, faults)| Some((kind, ConstCounter::new(cumulative(faults?)))))
            .collect();
        let Some((_, first)) = known.first() else { return Ok(()) };
        let help = "Page faults that had to read from disk (hard), and others (soft)";
        let mut metric =
            encoder.encode_descriptor("memreport_page_faults", help, None, first.metric_type())?;
        for (kind, counter) in known {
            counter.encode(metric.encode_family(&[("kind", kind)])?)?;
        }
        Ok(())
    }

    fn encode_reported(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let Some((_, _, first)) = self.reported.first() else { return Ok(()) };
        let help = "Memory that reporters name, and in heap-unclassified what they do not";
        let mut metric = encoder.encode_descriptor(
            "memreport_reported",
            help,
            Some(&Unit::Bytes),
            ConstGauge::new(*first).metric_type(),
        )?;
        for (path, kind, bytes) in &self.reported {
            let labels = [("path", path.as_str()), ("kind", kind)];
            ConstGauge::new(*bytes).encode(metric.encode_family(&labels)?)?;
        }
        Ok(())
    }

    fn encode_of_the_program(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        for wanted in [Units::Bytes, Units::Count, Units::CountCumulative, Units::Percentage] {
            let first = self.of_the_program.iter().take(MAX_FIGURES);
            let figures: Vec<_> = first.filter(|(_, (units, _))| *units == wanted).collect();
            if figures.is_empty() {
                continue;
            }
            let (metric, unit) = match wanted {
                Units::Bytes => ("memreport_figure", Some(Unit::Bytes)),
                Units::Count => ("memreport_figure", None),
                Units::CountCumulative => ("memreport_figure_events", None),
                Units::Percentage => ("memreport_figure", Some(Unit::Other("ratio".to_owned()))),
            };
            let help = "Single figures of the program's own";
            let value_type = match wanted {
                Units::CountCumulative => MetricType::Counter,
                _ => MetricType::Gauge,
            };
            let mut metric = encoder.encode_descriptor(metric, help, unit.as_ref(), value_type)?;
            for (name, (units, amount)) in figures {
                let labels = [("name", name.as_str())];
                let family = metric.encode_family(&labels)?;
                match units {
                    Units::Bytes | Units::Count => ConstGauge::new(*amount).encode(family)?,
                    Units::CountCumulative => {
                        ConstCounter::new(cumulative(*amount)).encode(family)?;
                    }
                    Units::Percentage => ConstGauge::new(ratio(*amount)).encode(family)?,
                }
            }
        }
        Ok(())
    }
}

/// Writes one metric without labels.
fn metric(
    encoder: &mut DescriptorEncoder<'_>,
    (name, help, unit): (&str, &str, Option<&Unit>),
    value: &dyn EncodeMetric,
) -> fmt::Result {
    value.encode(encoder.encode_descriptor(name, help, unit, value.metric_type())?)
}

/// Returns hundredths of a percent as a number, which is 1 for 100 %.
fn ratio(hundredths: i64) -> f64 {
    let most = |_| if hundredths < 0 { i32::MIN } else { i32::MAX };
    f64::from(i32::try_from(hundredths).unwrap_or_else(most)) / 10_000.0
}

fn cumulative(count: i64) -> u64 {
    u64::try_from(count).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_and_paths_are_written() {
        let reports = [
            Report::other("resident", 1000, ""),
            Report::other("heap-allocated", 900, ""),
            Report::other("heap-committed/allocated", 900, ""),
            Report::other("heap-committed/overhead", 100, ""),
            Report::percentage("heap-overhead-fraction", 1000, ""),
            Report::cumulative("page-faults-soft", 7, ""),
            Report::count("threads", 3, ""),
            Report::heap("explicit/a\"b\\c/x", 500, ""),
            Report::heap("explicit/a\"b\\c/y", 50, ""),
            Report::non_heap("explicit/map", 80, ""),
            Report::other("rss/heap", 5, ""),
        ];
        let expected = r#"# HELP process_resident_memory_bytes Memory in physical memory, shared pages included
# TYPE process_resident_memory_bytes gauge
# UNIT process_resident_memory_bytes bytes
process_resident_memory_bytes 1000
# HELP memreport_heap_allocated_bytes Memory in live blocks of the heap allocator
# TYPE memreport_heap_allocated_bytes gauge
# UNIT memreport_heap_allocated_bytes bytes
memreport_heap_allocated_bytes 900
# HELP memreport_heap_committed_bytes Memory that the heap allocator has of the system
# TYPE memreport_heap_committed_bytes gauge
# UNIT memreport_heap_committed_bytes bytes
memreport_heap_committed_bytes 1000
# HELP process_threads Threads of the process
# TYPE process_threads gauge
process_threads 3
# HELP memreport_heap_overhead_ratio Of the heap memory of live blocks and the allocator's overhead, the overhead
# TYPE memreport_heap_overhead_ratio gauge
# UNIT memreport_heap_overhead_ratio ratio
memreport_heap_overhead_ratio 0.1
# HELP memreport_page_faults Page faults that had to read from disk (hard), and others (soft)
# TYPE memreport_page_faults counter
memreport_page_faults_total{kind="soft"} 7
# HELP memreport_reported_bytes Memory that reporters name, and in heap-unclassified what they do not
# TYPE memreport_reported_bytes gauge
# UNIT memreport_reported_bytes bytes
memreport_reported_bytes{path="explicit/a\"b\\c",kind="heap"} 550
memreport_reported_bytes{path="explicit/map",kind="nonheap"} 80
memreport_reported_bytes{path="explicit/heap-unclassified",kind="heap"} 350
# EOF
"#;
        assert_eq!(text(&reports), expected);
    }

    #[test]
    fn a_ratio_beyond_its_range_is_the_greatest_of_its_sign() {
        for (hundredths, expected) in [
            (0, 0.0),
            (-2_500, -0.25),
            (10_000, 1.0),
            (i64::MAX, 214_748.364_7),
            (i64::MIN, -214_748.364_8),
        ] {
            assert_eq!(ratio(hundredths), expected, "{hundredths}");
        }
    }

    #[test]
    fn bytes_belong_to_the_figure_of_their_path() {
        let table = [
            ("resident", Some("resident")),
            ("resident/shared", None),
            ("heap-committed", Some("heap-committed")),
            ("heap-committed/overhead", Some("heap-committed")),
            ("committed", None),
            ("textures", None),
        ];
        for (path, expected) in table {
            let mut figures = Figures::default();
            assert_eq!(figures.add_bytes(path, 5), expected.is_some(), "{path}");
            figures.add_bytes(path, 2);
            let found: Vec<_> = figures.bytes.into_iter().collect();
            let expected: Vec<_> = expected.map(|known| (known, 7)).into_iter().collect();
            assert_eq!(found, expected, "{path}");
        }
    }

    #[test]
    fn single_figures_of_the_program_are_written_by_their_units() {
        let reports = [
            Report::other("textures", 4096, ""),
            Report::count("open files", 7, ""),
            Report::cumulative("requests", 9, ""),
            Report::percentage("cache-hits", 9950, ""),
            Report::other("of-a-tree/x", 1, ""),
        ];
        let expected = r#"# HELP memreport_figure_bytes Single figures of the program's own
# TYPE memreport_figure_bytes gauge
# UNIT memreport_figure_bytes bytes
memreport_figure_bytes{name="textures"} 4096
# HELP memreport_figure Single figures of the program's own
# TYPE memreport_figure gauge
memreport_figure{name="open files"} 7
# HELP memreport_figure_events Single figures of the program's own
# TYPE memreport_figure_events counter
memreport_figure_events_total{name="requests"} 9
# HELP memreport_figure_ratio Single figures of the program's own
# TYPE memreport_figure_ratio gauge
# UNIT memreport_figure_ratio ratio
memreport_figure_ratio{name="cache-hits"} 0.995
# EOF
"#;
        assert_eq!(text(&reports), expected);
        let many: Vec<_> = (0..1000).map(|n| Report::count(format!("{n:04}"), n, "")).collect();
        let series = text(&many).lines().filter(|line| line.contains("{name=")).count();
        assert_eq!(series, MAX_FIGURES);
    }

    #[test]
    fn many_paths_are_few_series_and_no_byte_is_lost() {
        let mut reports: Vec<_> = (1..=1000)
            .map(|number| Report::heap(format!("explicit/{number}"), number, ""))
            .collect();
        reports.push(Report::other("heap-allocated", 1_000_000, ""));
        let text = text(&reports);
        let series: Vec<_> =
            text.lines().filter(|line| line.starts_with("memreport_reported_bytes{")).collect();
        assert_eq!(series.len(), MAX_PATHS + 2);
        assert!(series[MAX_PATHS].contains("path=\"<other>\""), "{}", series[MAX_PATHS]);
        let values = series.iter().map(|line| line.rsplit_once(' ').unwrap().1);
        assert_eq!(values.map(|value| value.parse::<i64>().unwrap()).sum::<i64>(), 1_000_000);
    }

    #[test]
    fn nothing_reported_is_no_metric() {
        assert_eq!(text(&[]), "# EOF\n");
    }
}
