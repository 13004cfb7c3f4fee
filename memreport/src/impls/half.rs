//! Measures half-precision floating-point numbers of `half`, which own nothing. *Exact.*

owns_nothing!(half::f16, half::bf16);
