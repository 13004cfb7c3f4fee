//! The command line, on files whose sums are known.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use arrow_array::{Array, Int64Array, StringArray};

const REPORT: &str = r#"{"version": 1, "hasMozMallocUsableSize": true, "reports": [
    {"process": "shop (pid 7)", "path": "explicit/a", "kind": 1, "units": 0, "amount": 5, "description": "A."},
    {"process": "shop (pid 7)", "path": "heap-allocated", "kind": 2, "units": 0, "amount": 9, "description": "H."},
    {"process": "helper (pid 8)", "path": "heap-allocated", "kind": 2, "units": 0, "amount": 70, "description": "H."}],
    "memreport": {"version": 1, "timeMs": 86400000, "process": {"name": "shop", "pid": 7}}}"#;

const DUMP: &str = r##"{"version": 5, "invocation": {"dmdEnvVar": "1", "mode": "dark-matter"},
    "blockList": [{"req": 4000, "slop": 96, "alloc": "L", "num": 3}, {"req": 500, "alloc": "M", "reps": ["R"]}],
    "traceTable": {"L": ["l", "m"], "M": ["m"], "R": ["r"]},
    "frameTable": {"l": "#00: shop::load (src/main.rs:12)", "m": "#00: shop::main (src/main.rs:40)",
      "r": "#00: explicit/shop"}}"##;

const RECORDING: &str = r#"{"recording":1,"program":"p","pid":7,"startedMs":0,"sampleBytes":null}
["thread",1,70,"main"]
["site",1,1,["1000"],0]
["+",10,1,4096,100,112]
["+",10,1,8192,50,56]
["-",5,4096,1]
["=",5,168,2,112,1,4096]
{"end":true,"events":3,"lost":0}
"#;

fn run(words: &[&str], folder: &Path) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_memreport-fleet"));
    command.args(words).current_dir(folder);
    command.env_remove("OTEL_SERVICE_NAME").env_remove("OTEL_RESOURCE_ATTRIBUTES");
    command.output().expect("it is built")
}

/// Returns the paths of all files below a folder, sorted.
fn files(folder: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            found.extend(files(&path));
        } else {
            found.push(path.display().to_string());
        }
    }
    found.sort();
    found
}

/// Returns the rows of a table as text.
fn rows(folder: &Path, table: &str) -> String {
    let read = |file: String| {
        let batches = memreport_fleet::table::read_parquet(fs::read(file).expect("a file"));
        format!("{:?}", batches.expect("Parquet"))
    };
    files(&folder.join("data/v1").join(table)).into_iter().map(read).collect()
}

#[test]
fn files_are_added_to_a_dataset_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    for (name, text) in [("report.json", REPORT), ("dump.json", DUMP), ("a.rec", RECORDING)] {
        fs::write(folder.join(name), text).expect("there is space");
    }
    let words = ["export", "report.json", "dump.json", "a.rec", "-o", "data", "--host", "h/1"];
    let export = || {
        let output = run(&[&words[..], &["--time", "86400000"]].concat(), folder);
        assert!(output.status.success(), "{output:?}");
        files(&folder.join("data"))
    };
    let first = export();
    assert_eq!(first, export(), "the same files are the same snapshots");
    assert!(first.iter().all(|file| file.contains("/date=1970-01-02/host=h%2F1/")), "{first:?}");
    let tables = |name: &str| first.iter().filter(|file| file.contains(name)).count();
    let counts = ["/snapshots/", "/reports/", "/blocks/", "/stacks/", "/timeline/"].map(tables);
    assert_eq!(counts, [3, 1, 2, 2, 1]);
    let blocks = rows(folder, "blocks");
    assert!(blocks.contains("shop::load (src/main.rs:12)") && blocks.contains("12000"), "{blocks}");
    let snapshots = rows(folder, "snapshots");
    for text in ["\"report\"", "\"dump\"", "\"recording\"", "12788", "h/1"] {
        assert!(snapshots.contains(text), "{text}: {snapshots}");
    }
    assert!(rows(folder, "timeline").contains("4096"));
}

#[test]
fn the_figures_of_a_report_are_those_of_the_process_that_wrote_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    // Firefox's reports do not state who wrote them.
    let firefox = REPORT.replace("shop (pid 7)", "Main Process (pid 7)");
    let (firefox, _) = firefox.split_once(",\n    \"memreport\"").expect("it has ours");
    for (name, text) in [("shop", REPORT), ("firefox", &format!("{firefox}}}"))] {
        fs::write(folder.join("report.json"), text).expect("there is space");
        let output = run(&["export", "report.json", "-o", name, "--service", name], folder);
        assert!(output.status.success(), "{output:?}");
        let read = |table: &str| {
            let [file] = &files(&folder.join(name).join("v1").join(table))[..] else {
                panic!("{name}: a file of {table}")
            };
            let batches = memreport_fleet::table::read_parquet(fs::read(file).expect("a file"));
            batches.expect("Parquet").remove(0)
        };
        let snapshots = read("snapshots");
        let number = |column: &str| {
            let column = snapshots.column_by_name(column).expect("it is a column");
            let column: &Int64Array = column.as_any().downcast_ref().expect("it has numbers");
            column.is_valid(0).then(|| column.value(0))
        };
        let figures = ["heap_allocated_bytes", "heap_unclassified_bytes", "explicit_bytes"];
        assert_eq!(figures.map(number), [Some(9), Some(4), Some(9)], "{name}");
        let reports = read("reports");
        let processes = reports.column_by_name("process").expect("it is a column");
        let processes: &StringArray = processes.as_any().downcast_ref().expect("it has texts");
        let processes: Vec<_> = processes.iter().flatten().collect();
        assert_eq!(processes, ["", "", "helper (pid 8)"], "{name}");
    }
}

#[test]
fn what_does_not_fit_is_refused_with_the_remedy() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    fs::write(folder.join("report.json"), REPORT).expect("there is space");
    let refused = |words: &[&str]| {
        let output = run(words, folder);
        assert_eq!(output.status.code(), Some(2), "{words:?}");
        String::from_utf8(output.stderr).expect("it is text")
    };
    let text = refused(&["export", "report.json", "--to", "otlp", "-o", "x"]);
    assert!(text.contains("a report has no stacks; export a dump"), "{text}");
    let text = refused(&["query", "nonsense", "."]);
    assert!(text.contains("there are growth, outliers, leaks,"), "{text}");
    let text = refused(&["query", "growth", ".", "--engine", "spark", "--python", "no-python"]);
    assert!(text.contains("no engine is installed; install one: pip install pyspark"), "{text}");
    let text = refused(&["query", "regression", "."]);
    assert!(text.contains("`regression` needs --service"), "{text}");
    let store = format!("file://{}", folder.join("report.json/x").display());
    let text = refused(&["agent", "--to", &store, "--spool", "spool"]);
    assert!(text.contains("report.json/x: "), "{text}");
    let text = refused(&["agent", "--to", "ftp://x", "--spool", "spool"]);
    assert!(text.contains("ftp://x is no address of a store"), "{text}");
}

#[test]
fn a_question_is_printed_with_its_values() {
    let words =
        ["query", "regression", ".", "--sql", "--service", "a'b", "--before", "1", "--after", "2"];
    let output = run(&words, Path::new("."));
    let text = String::from_utf8(output.stdout).expect("it is text");
    assert!(text.contains("service_name = 'a''b' AND service_version IN ('1', '2')"), "{text}");
}
