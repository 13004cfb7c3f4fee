//! Identifiers of `uuid`, which own nothing. *Exact.*

use super::plain::owns_nothing;

owns_nothing!(uuid::Uuid, uuid::NonNilUuid);
