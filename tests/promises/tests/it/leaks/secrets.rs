//! LK1: secrets in the environment and in the home of the user who starts a sandbox, in every encoding.

use super::{dump_inside, dump_outside};
use crate::belljar::belljar;
use crate::scene::{PreparedHost, random};
use crate::tally::{Tally, Verdict};
use belljar_testkit::world::World;

/// Variables that hold secrets.
const VARIABLES: [&str; 12] = [
    "OPENAI_API_KEY",
    "ANTHROPIC_API_KEY",
    "GITHUB_TOKEN",
    "DATABASE_URL",
    "AWS_SECRET_ACCESS_KEY",
    "GOOGLE_APPLICATION_CREDENTIALS",
    "SSH_AUTH_SOCK",
    "KUBECONFIG",
    "NPM_TOKEN",
    "MCP_ADMIN_TOKEN",
    "BELLJAR_TOKEN",
    "LD_PRELOAD_SECRET",
];

/// Files that hold secrets.
const FILES: [&str; 8] = [
    ".netrc",
    ".git-credentials",
    ".ssh/id_rsa",
    ".aws/credentials",
    ".config/gh/hosts.yml",
    ".docker/config.json",
    ".kube/config",
    ".bash_history",
];

#[test]
fn sandbox_cannot_read_host_secrets() {
    let tally = Tally::new("secrets");
    World::as_everyone(belljar(), |world| judge(&mut PreparedHost::lay(world), &tally));
    tally.close();
}

/// Plants the secrets and searches for each in every sandbox of a scene.
pub(crate) fn judge(scene: &mut PreparedHost<'_>, tally: &Tally) {
    let mut secrets: Vec<(String, String)> =
        VARIABLES.map(|name| (format!("variable {name}"), format!("secret-{}", random(16)))).into();
    scene.environment = secrets
        .iter()
        .map(|(name, secret)| (name.trim_start_matches("variable ").to_owned(), secret.clone()))
        .collect();
    for name in FILES {
        let secret = format!("secret-{}", random(16));
        scene.world.write(name, &secret);
        secrets.push((format!("file {name}"), secret));
    }
    let outside = dump_outside(scene, &["/proc/self".to_owned(), scene.path("")]);
    for way in scene.ways {
        let inside = dump_inside(scene, *way);
        let place = format!("{way:?} {:?}", scene.world.user());
        for (name, secret) in &secrets {
            let verdict = match (found(&inside, secret), outside.contains(secret)) {
                (Some(line), _) => Verdict::Escaped(line),
                (None, true) => Verdict::Held,
                (None, false) => Verdict::Invalid("it can't be read outside, either".to_owned()),
            };
            tally.count("LK1", &format!("LK1 {name}"), &place, verdict);
        }
        let verdict = if inside.contains("file /proc/") {
            Verdict::Held
        } else {
            Verdict::Invalid("an empty dump".to_owned())
        };
        tally.count("LK1", "LK1 the dump itself", &place, verdict);
    }
}

/// Returns the beginning of the line that contains the secret, plain or encoded.
fn found(dump: &str, secret: &str) -> Option<String> {
    let hex: String = secret.bytes().map(|byte| format!("{byte:02x}")).collect();
    let reversed: String = secret.chars().rev().collect();
    // The halves of a split secret are long enough to be unique.
    let (first, second) = secret.split_at(secret.len() / 2 + 3);
    let forms = [secret, &hex, &base64(secret), &reversed, first, second];
    let line = dump.lines().find(|line| forms.iter().any(|form| line.contains(form)))?;
    Some(line.chars().take(120).collect())
}

/// Encodes whole groups of three bytes in base64.
fn base64(text: &str) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    text.as_bytes()
        .chunks_exact(3)
        .flat_map(|three| {
            let number = three.iter().fold(0_usize, |number, byte| number << 8 | usize::from(*byte));
            [18, 12, 6, 0].map(|shift| char::from(ALPHABET[number >> shift & 63]))
        })
        .collect()
}
