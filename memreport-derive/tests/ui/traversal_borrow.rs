//! Adds no value to a traversal that does not outlive it: what is put off would dangle.
use memreport::Traversal;

fn main() {
    let traversal = Traversal::new();
    let text = String::new();
    traversal.run(|ops| ops.add(&text));
}
