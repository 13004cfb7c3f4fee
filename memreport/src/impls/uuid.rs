//! Measures identifiers of `uuid`, which own nothing. *Exact.*

owns_nothing!(uuid::Uuid, uuid::NonNilUuid);
