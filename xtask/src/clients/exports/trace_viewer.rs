//! Catapult's trace viewer, the program behind `chrome://tracing`, in Chromium.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::subject::{Subject, Sums};
use super::{Bench, Client, equal};
use crate::clients::file_server::{Files, serve};
use crate::clients::webdriver::chromium;
use crate::failure::Failure;

pub(crate) const CLIENT: Client = Client {
    name: "trace-viewer",
    needs: |found| {
        found.trace_viewer()?;
        chromium::find().map(|_| ())
    },
    check,
};

/// The page that loads the viewer. The viewer is an HTML import, for which current browsers need a
/// library.
const PAGE: &str = r#"<!DOCTYPE html>
<meta charset="utf-8">
<script src="/webcomponents.js"></script>
<link rel="import" href="/viewer.html">
<body>
<script>
document.addEventListener("WebComponentsReady", async () => {
  try {
    const answer = await fetch("/trace.json");
    const model = new tr.Model();
    await new tr.importer.Import(model).importTracesWithProgressDialog([await answer.text()]);
    const view = document.createElement("tr-ui-timeline-view");
    document.body.appendChild(view);
    view.model = model;
    window.loaded = model;
  } catch (error) {
    window.trouble = String(error);
  }
});
</script>
"#;

/// The script that reads the viewer's model of the trace.
const QUESTION: &str = r#"
if (window.trouble) return { trouble: window.trouble };
if (!window.loaded) return null;
const value = scalar => scalar ? scalar.value : 0;
const sum = (list, value) => list.reduce((total, each) => total + value(each), 0);
return {
  warnings: loaded.importWarnings.map(warning => warning.message),
  dumps: loaded.globalMemoryDumps.map(dump => {
    const process = Object.values(dump.processMemoryDumps)[0];
    const heaps = Object.entries(process.heapDumps || {});
    return {
      allocators: Object.fromEntries(process.memoryAllocatorDumps.map(each => [each.fullName, {
        size: value(each.numerics.size),
        effective: value(each.numerics.effective_size),
        below: sum(each.children, child => value(child.numerics.size)),
      }])),
      heaps: Object.fromEntries(heaps.map(([name, heap]) => [name, {
        bytes: sum(heap.entries, each => each.size), blocks: sum(heap.entries, each => each.count),
      }])),
    };
  }),
};
"#;

fn check(bench: &Bench, subject: &Subject) -> Result<(), Failure> {
    let one = loaded(bench, &[subject])?;
    equal("a dump", &one, &json!({ "warnings": [], "dumps": [expected(&subject.sums)] }))?;
    // Two dumps in a trace can be compared: the viewer must accept the second one's additions to
    // the maps.
    let two = loaded(bench, &[subject, subject])?;
    let each = expected(&subject.sums);
    equal("two dumps", &two, &json!({ "warnings": [], "dumps": [each, each] }))
}

fn expected(sums: &Sums) -> Value {
    let mut allocators = BTreeMap::from([("malloc", sums.bytes)]);
    if let Some([unreported, once, twice]) = sums.classes {
        allocators.extend([
            ("unreported", unreported),
            ("once-reported", once),
            ("twice-reported", twice),
        ]);
    }
    json!(allocators)
}

/// Returns the viewer's warnings, and the bytes of each allocator in each dump.
fn loaded(bench: &Bench, subjects: &[&Subject]) -> Result<Value, Failure> {
    let (viewer, polyfill) = bench.tools.trace_viewer()?;
    let trace = bench.export(subjects, "memory-infra", &[])?;
    let files = BTreeMap::from([
        ("/viewer.html", viewer),
        ("/webcomponents.js", polyfill),
        ("/trace.json", trace),
    ]);
    let texts = BTreeMap::from([("/index.html", PAGE)]);
    let address = serve(Files { folder: None, files, texts })?;
    let browser = bench.browser()?;
    browser.open(&format!("{address}/index.html"))?;
    let mut model = browser.wait_for(QUESTION)?;
    if let Some(trouble) = model["trouble"].as_str() {
        return Err(trouble.into());
    }
    let mut dumps = Vec::new();
    for dump in model["dumps"].as_array().ok_or("the viewer found no dumps")? {
        dumps.push(sizes(dump, &subjects[0].sums)?);
    }
    Ok(json!({ "warnings": model["warnings"].take(), "dumps": dumps }))
}

/// Checks a memory dump, and returns the bytes of `malloc` and of each class.
fn sizes(dump: &Value, sums: &Sums) -> Result<Value, Failure> {
    let empty = serde_json::Map::new();
    let mut sizes = serde_json::Map::new();
    for (name, allocator) in dump["allocators"].as_object().unwrap_or(&empty) {
        let size = allocator["size"].as_i64();
        // The viewer subtracts what it takes for overhead.
        equal(name, &allocator["effective"].as_i64(), &size)?;
        match name.as_str() {
            "tracing" => {}
            "explicit" => {
                equal("explicit", &size, &Some(sums.bytes))?;
                equal("below explicit", &allocator["below"].as_i64(), &size)?;
            }
            _ => {
                // The viewer drops heaps without blocks.
                equal(name, &Some(dump["heaps"][name]["bytes"].as_i64().unwrap_or(0)), &size)?;
                sizes.insert(name.clone(), size.into());
            }
        }
    }
    if sums.blocks.is_some() {
        equal("blocks", &dump["heaps"]["malloc"]["blocks"].as_i64(), &sums.blocks)?;
    }
    let has_tree = dump["allocators"].get("explicit").is_some();
    equal("the tree of reports", &has_tree, &sums.classes.is_some())?;
    // No figure of the command line has the requested bytes of every kind of dump: they equal their
    // heap, by the loop above, and are at most the usable ones.
    let requested = sizes.remove("requested").and_then(|size| size.as_i64());
    if !requested.is_some_and(|size| (1..=sums.bytes).contains(&size)) {
        return Err(format!("the viewer has {requested:?} requested bytes").into());
    }
    Ok(sizes.into())
}
