//! Rules for the remaining calls about the system at large.

use super::{Rule, allow};

pub(super) const RULES: &[Rule] = &[
    allow("uname", libc::SYS_uname, "names the system"),
    allow("sysinfo", libc::SYS_sysinfo, "memory and load, as free and make -l read them"),
    allow("getrandom", libc::SYS_getrandom, "random bytes"),
    allow("lsm_get_self_attr", LSM_GET_SELF_ATTR, "the caller's own security labels"),
    allow("lsm_list_modules", LSM_LIST_MODULES, "which security modules there are"),
];

const LSM_GET_SELF_ATTR: libc::c_long = 459;
const LSM_LIST_MODULES: libc::c_long = 461;
