//! Who holds whom: on small dumps as they are told, and on graphs at random against what is found by taking nodes away.

mod oracle;
mod shown;
mod random;
