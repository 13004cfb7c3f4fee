//! Writes the page: one document with its style and script, and with the data if there is no
//! server.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use flate2::{Compression, write::GzEncoder};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::io::{self, Write};

const BODY: &str = include_str!("assets/page/page.html");
const STYLE: &str = concat!(
    include_str!("assets/styles/base.css"),
    include_str!("assets/styles/head.css"),
    include_str!("assets/styles/views.css"),
    include_str!("assets/styles/drawings.css"),
);
/// The scripts, each after those it uses.
const SCRIPT: &str = concat!(
    include_str!("assets/model/numbers.js"),
    include_str!("assets/model/names.js"),
    include_str!("assets/model/forest.js"),
    include_str!("assets/model/tree.js"),
    include_str!("assets/model/text.js"),
    include_str!("assets/model/calls.js"),
    include_str!("assets/model/heap.js"),
    include_str!("assets/model/items.js"),
    include_str!("assets/model/census.js"),
    include_str!("assets/model/compare.js"),
    include_str!("assets/model/recording.js"),
    include_str!("assets/parts/dom.js"),
    include_str!("assets/parts/outline.js"),
    include_str!("assets/parts/folds.js"),
    include_str!("assets/parts/table.js"),
    include_str!("assets/parts/flame.js"),
    include_str!("assets/parts/treemap.js"),
    include_str!("assets/parts/graph.js"),
    include_str!("assets/views/sheets.js"),
    include_str!("assets/page/data.js"),
    include_str!("assets/page/state.js"),
    include_str!("assets/page/views.js"),
    include_str!("assets/page/moments.js"),
    include_str!("assets/page/header.js"),
    include_str!("assets/page/links.js"),
    include_str!("assets/page/controls.js"),
    include_str!("assets/page/actions.js"),
    include_str!("assets/page/page.js"),
);

/// A page with everything that it needs.
#[derive(Debug)]
pub(crate) struct Document {
    manifest: Value,
    /// The names and contents of the data, gzipped.
    embedded: Vec<(String, Vec<u8>)>,
}

impl Document {
    /// Makes a page without a server, from the summaries of its snapshots and recordings.
    pub(crate) fn offline(snapshots: &[Value], recordings: &[Value]) -> Self {
        let manifest = json!({ "isServed": false, "moments": snapshots, "recordings": recordings });
        Document { manifest, embedded: Vec::new() }
    }

    /// Makes a page that requests its data from the server.
    #[cfg(feature = "serve")]
    pub(crate) fn served() -> Self {
        Document { manifest: json!({ "isServed": true }), embedded: Vec::new() }
    }

    /// Sets what the page shows at first: members of its address.
    pub(crate) fn open_on(&mut self, choice: &Value) {
        self.manifest["first"] = choice.clone();
    }

    /// Adds a piece of JSON.
    pub(crate) fn embed(&mut self, name: String, json: &[u8]) -> io::Result<()> {
        self.embedded.push((name, gzip(json)?));
        Ok(())
    }

    /// Writes the page.
    ///
    /// # Errors
    /// The page cannot be written.
    pub(crate) fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        let policy = policy();
        write!(
            out,
            "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta http-equiv=\"Content-Security-Policy\" content=\"{policy}\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <meta name=\"referrer\" content=\"no-referrer\">\n<meta name=\"color-scheme\" content=\"light dark\">\n\
             <link rel=\"icon\" href=\"data:,\">\n<title>about:memory</title>\n<style>{STYLE}</style>\n</head>\n{BODY}"
        )?;
        let manifest = self.manifest.to_string().replace('<', "\\u003c");
        writeln!(out, "<script type=\"application/json\" id=\"manifest\">{manifest}</script>")?;
        for (name, content) in &self.embedded {
            let text = BASE64_STANDARD.encode(content);
            writeln!(
                out,
                "<script type=\"application/gzip\" data-name=\"{name}\">{text}</script>"
            )?;
        }
        write!(out, "<script>{SCRIPT}</script>\n</body>\n</html>\n")
    }
}

/// Returns the content security policy: this style, this script, and requests to the page's server.
pub(crate) fn policy() -> String {
    let hash = |text: &str| BASE64_STANDARD.encode(Sha256::digest(text));
    format!(
        "default-src 'none'; script-src 'sha256-{}'; style-src 'sha256-{}'; img-src data:; connect-src 'self'; \
         base-uri 'none'; form-action 'none'",
        hash(SCRIPT),
        hash(STYLE)
    )
}

pub(crate) fn gzip(text: &[u8]) -> io::Result<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(text)?;
    encoder.finish()
}
