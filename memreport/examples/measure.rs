//! Derives `MallocSizeOf` for two types, and measures a value.
//!
//! Run it with `cargo run -p memreport --example measure`.
#![expect(clippy::print_stdout, reason = "an example prints")]

use std::collections::HashMap;
use std::rc::Rc;

use memreport::{MallocSizeOf, measure};

// Declares the system's allocator. From here on it reports the true size of each block, with the
// bytes that it rounds up. Leave this out, and sizes are the requested ones.
memreport::global_allocator!();

/// A page of a web site. The derive measures each field in turn.
#[derive(MallocSizeOf)]
struct Page {
    title: String,
    /// The text of the page. Its bytes are listed under their own name.
    #[malloc_size_of(part)]
    text: String,
    /// The site's style, which all pages share. The first page visited counts it.
    style: Rc<Vec<u8>>,
    /// A field that owns nothing, or whose memory belongs to other code, states why.
    #[malloc_size_of(ignore = "static text")]
    language: &'static str,
}

/// All pages by their path.
#[derive(Default, MallocSizeOf)]
struct Site {
    pages: HashMap<String, Page>,
}

fn main() {
    let style = Rc::new(vec![0; 5000]);
    let mut site = Site::default();
    for number in 1..=3 {
        let page = Page {
            title: format!("Page {number}"),
            text: "words ".repeat(100 * number),
            style: Rc::clone(&style),
            language: "en",
        };
        site.pages.insert(format!("/page-{number}"), page);
    }

    let measured = measure(&site);
    println!("The site owns {} bytes in {} blocks.", measured.bytes, measured.blocks);
    for part in &measured.parts {
        println!("Of these, {} has {} bytes.", part.path, part.bytes);
    }

    // The texts have 3,600 bytes; the allocator may have rounded them up.
    assert!(measured.part("text") >= 3600);
    // The style counts once, although three pages own it.
    assert!(measured.bytes >= 3600 + 5000 && measured.bytes < 3600 + 2 * 5000);
    // Bytes from a formula: the map's table, which cannot be found without DMD.
    println!("{} bytes are computed.", measured.computed);
}
