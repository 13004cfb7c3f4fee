//! One mistake is one message, at the type of the field.
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
