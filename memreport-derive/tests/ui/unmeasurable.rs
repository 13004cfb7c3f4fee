//! Reports an unmeasurable field once, at its type.
use memreport::MallocSizeOf;

struct Window;

#[derive(MallocSizeOf)]
struct Page {
    text: String,
    window: Option<Window>,
}

#[derive(MallocSizeOf)]
enum Content {
    Text(String),
    Window(Box<Window>),
}

fn main() {
    memreport::measure(&Page { text: String::new(), window: None });
}
