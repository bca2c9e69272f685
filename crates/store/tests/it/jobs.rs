//! Properties of jobs on either engine: each case runs on SQLite and on PostgreSQL.

mod accepted;
mod carried_out;
mod claimed;
mod ended;
mod kept;
mod listed;
mod owners;
mod schema;
mod told;
pub(crate) mod world;

/// Each of these functions as a test on each engine.
macro_rules! on_both_engines {
    ($($(#[$doc:meta])* async fn $name:ident($world:ident: StoreFixture) $body:block)*) => {
        $($(#[$doc])* async fn $name($world: StoreFixture) $body)*

        mod sqlite {
            $(#[test] fn $name() { super::StoreFixture::run_on_sqlite(super::$name) })*
        }

        mod postgres {
            $(#[test] fn $name() {
                super::StoreFixture::run_on_postgres(concat!(module_path!(), "::", stringify!($name)), super::$name)
            })*
        }
    };
}
pub(crate) use on_both_engines;
