//! FS7: the job's description and result, and the program that carries it out.

use crate::belljar::belljar;
use crate::case::{Case, HERE, args};
use crate::scene::PreparedHost;
use crate::way::{AttemptPlace, StartMethod};
use belljar_testkit::job::{job, shell};
use belljar_testkit::world::World;
use libc::{EACCES, EBUSY, EPERM, EROFS, ETXTBSY, EXDEV, O_RDWR, O_TRUNC, O_WRONLY};
use serde_json::json;

/// Errnos that refuse a change to a running program.
const UNCHANGEABLE_OR_BUSY: &[i32] = &[EROFS, EACCES, EPERM, EXDEV, ETXTBSY, EBUSY];

/// The job replaces its own description and its result, step by step, and then fails.
#[test]
fn job_that_rewrites_its_description_is_judged_by_the_original() {
    World::as_everyone(belljar(), |world| {
        let forged = job(&json!([shell("true"), shell("true"), shell("true")]));
        // The job doesn't own the files, but it owns their directory.
        let write = format!(
            "cat > /job/forged <<'E'\n{forged}\nE\ncp /job/forged /job/result.json; mv -f /job/forged /job/job.json; \
             cat /job/job.json"
        );
        let document = job(&json!([shell(&write), shell("exit 3"), shell("true")]));
        world.write("job.json", document.to_string());
        let ran = world.run(&["run", "--json", "job.json"]);
        let result = ran.json();
        let steps = result["steps"].as_array().unwrap();
        // The control: the forged description was in place.
        assert_eq!(steps[0]["result"]["stdout"], format!("{forged}\n"));
        assert_eq!(
            (ran.code, &result["status"], &result["failure_code"]),
            (1, &json!("failure"), &json!("step_failed"))
        );
        assert_eq!((steps.len(), &steps[1]["result"]["exit_code"]), (2, &json!(3)));
        assert_eq!(result["job_id"], document["job_id"]);
    });
}

pub(crate) fn cases(_: &PreparedHost<'_>, place: &AttemptPlace) -> Vec<Case> {
    let runner = place.path("/run/belljar/cynode-sba");
    let case = |what: &str, name: &str, arguments| {
        Case::call("FS7", what, name, arguments).fails(UNCHANGEABLE_OR_BUSY).only(&[StartMethod::Job])
    };
    vec![
        case("the runner, to write", "openat", args![HERE, &runner, O_WRONLY, 0]),
        case("the runner, emptied", "openat", args![HERE, &runner, O_RDWR | O_TRUNC, 0]),
        case("the runner, cut off", "truncate", args![&runner, 1]),
        case("the runner, without execute permission", "chmod", args![&runner, 0o644]),
        case("the runner, under another name", "link", args![&runner, place.path("/tmp/runner")]),
        case("the runner, removed", "unlink", args![&runner]),
    ]
}
