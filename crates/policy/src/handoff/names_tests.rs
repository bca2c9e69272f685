//! Names of many ecosystems, each with who trusts it.

use super::tests::kinds;

#[test]
fn names_that_gain_trust_are_known_in_every_ecosystem() {
    for (kind, names) in [
        ("belljar", "belljar.yaml belljar.yml a/belljar.yaml .belljar/config.yaml policy.yaml egress.yaml"),
        (
            "package",
            "gradle/wrapper/gradle-wrapper.properties gradle/wrapper/gradle-wrapper.jar .mvn/wrapper/maven-wrapper.properties \
             .mvn/extensions.xml gradle/libs.versions.toml Package.resolved Cartfile cpanfile renv.lock cabal.project stack.yaml \
             shard.yml vcpkg.json paket.dependencies uv.toml pixi.toml requirements/dev.txt .pnp.cjs .pnpmfile.cjs bunfig.toml \
             deno.json .npmrc .yarnrc.yml composer.json Gemfile mix.exs pubspec.yaml go.mod",
        ),
        (
            "build",
            "Package.swift .rubocop.yml Makefile.PL Build.PL Setup.hs rebar.config rebar.config.script project/plugins.sbt \
             project/Build.scala project/build.properties build.sbt sub/other.sbt phpunit.xml phpunit.xml.dist hie.yaml \
             phpstan.neon .php-cs-fixer.php rector.php .htaccess .pylintrc mypy.ini .flake8 .coveragerc tox.ini setup.cfg \
             noxfile.py conftest.py sitecustomize.py usercustomize.py x.pth docs/conf.py mkdocs.yml gunicorn.conf.py \
             pyrightconfig.json build.sc deps.edn bb.edn project.clj conanfile.py premake5.lua xmake.lua build.ninja \
             Makefile.am CMakeUserPresets.json CMakePresets.json meson.build SConstruct wscript configure build.zig \
             magefile.go .golangci.yml .air.toml Makefile.toml tauri.conf.json config.nims x.nimble dub.json build.yaml \
             analysis_options.yaml .luacheckrc x.rockspec dune dune-project x.opam x.gemspec Rakefile Guardfile config.ru \
             Brewfile x.cabal .formatter.exs .credo.exs BUCK .buckconfig MODULE.bazel .bazelrc WORKSPACE pants.toml \
             global.json x.fsproj x.pbxproj flake.nix other.nix deps/build.jl renv/activate.R .ropeproject/config.py \
             .eslintrc .eslintrc.json .prettierrc.yaml .babelrc .stylelintrc.json .mocharc.yml tsconfig.json \
             tsconfig.base.json webpack.common.js karma.conf.js wdio.conf.ts vite.config.ts angular.json nx.json turbo.json \
             nodemon.json .eleventy.js gatsby-node.js cypress.json Gruntfile.ts biome.json main.tf x.tf.json terragrunt.hcl \
             ansible.cfg Pulumi.yaml cdk.json serverless.yml helmfile.yaml kustomization.yaml Chart.yaml Vagrantfile \
             Dockerfile docker-compose.yml justfile Taskfile.yml clippy.config.js pom.xml build.xml settings.gradle \
             gradle.properties .cargo/config.toml build.rs rust-toolchain.toml",
        ),
        (
            "shell",
            ".Rprofile .Renviron .pdbrc .irbrc .pryrc .byebugrc .gdbinit .lldbinit .iex.exs .ghci .ocamlinit .octaverc \
             .psysh.php ipython_config.py jupyter_notebook_config.py .envrc .envrc.local .env .tool-versions mise.toml \
             .mise.toml mise.local.toml .mise/tasks/build .python-version .nvmrc .ruby-version .java-version .sdkmanrc \
             .bazelversion devenv.nix .direnv/bin/x .ssh/config .aws/config .kube/config .tmux.conf .zprofile .curlrc",
        ),
        (
            "editor",
            ".ycm_extra_conf.py .vim/ftplugin.vim .nvim.lua .exrc .dir-locals.el .emacs.d/init.el .helix/config.toml .clangd \
             compile_commands.json .vimspector.json .run/tests.run.xml .idea/runConfigurations/a.xml .vscode/launch.json \
             .devcontainer/devcontainer.json .project rust-project.json .lvimrc",
        ),
        (
            "ci",
            ".gitpod.yml .replit heroku.yml wrangler.toml firebase.json .goreleaser.yml .readthedocs.yaml bitrise.yml \
             codemagic.yaml .builds/a.yml .zuul.yaml fastlane/Fastfile .drone.yaml azure-pipelines.yaml Procfile Procfile.dev \
             bitbucket-pipelines.yml .buildkite/pipeline.yml appveyor.yml Jenkinsfile .woodpecker/a.yml skaffold.yaml Tiltfile",
        ),
        (
            "agent",
            ".trae/rules.md .kilocode/mcp.json .roomodes crush.json WARP.md .openhands/setup.sh .augment/rules.md",
        ),
        ("git", "lefthook.toml .lefthook-local.yml lefthook.yml .husky/pre-commit .pre-commit-config.yaml"),
        ("review", "deny.toml .semgrepignore"),
    ] {
        for name in names.split_whitespace() {
            assert!(kinds(name).contains(&kind), "{name} is {:?}, not {kind}", kinds(name));
        }
    }
}

#[test]
fn ordinary_sources_and_texts_of_those_ecosystems_take_no_yes() {
    for name in "src/lib.rs src/main.py app/models/user.rb lib/app.ex src/Main.hs src/main/scala/App.scala project/notes.md \
         docs/policy.md belljar.md.txt src/belljar/lib.rs src/config.rs src/index.ts test/app.test.ts styles/main.css data.json \
         data.yaml config/settings.yaml index.html R/analysis.R src/App.swift src/Program.cs Sources/App/main.swift \
         requirements/readme.md deps/readme.md cmd/main.go internal/x.go src/main.zig lib/main.dart README.rst LICENSE"
        .split_whitespace()
    {
        assert_eq!(kinds(name), [""; 0], "{name}");
    }
}
