//! Reads the data of a page that about-memory has written.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use flate2::read::GzDecoder;
use serde_json::Value;
use std::io::Read;

use crate::failure::Failure;

/// Returns the data of the heap on a page that opens on its flame graph, and otherwise a message
/// that says what it opens on. `cargo xtask clients browser` looks at the graph itself.
pub(super) fn flame_graph(page: &str) -> Result<String, Failure> {
    let Some(manifest) = between(page, "id=\"manifest\">", "</script>") else {
        return Ok("there is no page".to_owned());
    };
    let manifest: Value = serde_json::from_str(manifest)?;
    if manifest["first"]["as"] != "flame" {
        return Ok(format!("the page opens on {}", manifest["first"]));
    }
    let heap = between(page, "data-name=\"moments/0/heap\">", "</script>");
    let packed = BASE64_STANDARD.decode(heap.ok_or("the page has no heap")?);
    let packed = packed.map_err(|error| format!("the heap on the page: {error}"))?;
    let mut text = String::new();
    GzDecoder::new(&packed[..]).read_to_string(&mut text)?;
    Ok(text)
}

fn between<'t>(text: &'t str, start: &str, end: &str) -> Option<&'t str> {
    let (_, rest) = text.split_once(start)?;
    Some(rest.split_once(end)?.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_that_opens_on_something_else_has_no_answer() {
        let page = |first: &str| {
            format!(
                "<script id=\"manifest\">{{\"first\":{first}}}</script><script data-name=\"moments/0/heap\">"
            )
        };
        let text = flame_graph(&page("{\"view\":\"trees\"}")).unwrap();
        assert_eq!(text, "the page opens on {\"view\":\"trees\"}");
        assert_eq!(flame_graph("").unwrap(), "there is no page");
        assert!(flame_graph(&page("{\"as\":\"flame\"}")).is_err(), "it has no heap");
    }
}
