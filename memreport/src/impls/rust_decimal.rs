//! Measures decimal numbers of `rust_decimal`, which own nothing. *Exact.*

owns_nothing!(rust_decimal::Decimal, rust_decimal::RoundingStrategy);
