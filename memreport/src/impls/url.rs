//! Measures addresses of `url`: the text that each owns. *Exact.*
#![expect(unsafe_code, reason = "vouches for the block of the text")]

use url::{Host, Url};

use crate::{MallocSizeOf, Ops};

impl MallocSizeOf for Url {
    fn add_size_of_excluding_this<'a>(&'a self, ops: &Ops<'a>) {
        let text = self.as_str();
        // SAFETY: it owns a string, borrowed in full. Its capacity is not exposed.
        unsafe { ops.block_of_at_least(text.as_ptr(), text.len()) };
    }
}

impl<S: MallocSizeOf> MallocSizeOf for Host<S> {
    fn add_size_of_excluding_this<'a>(&'a self, ops: &Ops<'a>) {
        match self {
            Host::Domain(domain) => domain.add_size_of_excluding_this(ops),
            Host::Ipv4(_) | Host::Ipv6(_) => {}
        }
    }
}
