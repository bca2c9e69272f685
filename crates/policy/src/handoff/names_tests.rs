//! Names of many ecosystems, each with who trusts it.

use super::tests::kinds;

#[test]
fn names_that_gain_trust_are_known_in_every_ecosystem() {
    assert_known(&[
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
        (
            "review",
            "deny.toml .semgrepignore OWNERS .sops.yaml .mergify.yml known_hosts supply-chain/audits.toml",
        ),
        (
            "build",
            ".sconsign.dblite .lock-waf_linux_build build/c4che/_cache.py build/meson-private/coredata.dat \
             _build/doctrees/environment.pickle tmp/cache/bootsnap/x bootstrap/cache/config.php foo.h.gch a.phar x.whl pip.py \
             Package@swift-5.9.swift lakefile.lean Android.bp subprojects/x.wrap .vitepress/config.mts magefiles/a.go lit.cfg.py \
             .pylintrc.toml typedoc.json launchSettings.json",
        ),
        (
            "shell",
            "irbrc .rvmrc env/bin/activate etc/conda/activate.d/x.sh .ghc.environment.x86_64-linux-9.4",
        ),
        ("editor", "Session.vim rust-analyzer.toml buildServer.json .ctags.d/x.ctags"),
        ("agent", ".agent/rules.md codex.md .clinerules-code mcp_config.json hooks/hooks.json"),
        ("git", "prek.toml hk.pkl .simple-git-hooks.json .cargo-husky/hooks/pre-commit"),
        (
            "package",
            "Manifest-v1.11.toml pylock.dev.toml .swiftpm/configuration/mirrors.json dev-requirements.txt",
        ),
        ("ci", "terraform.tfstate config/deploy.yml Dockerfile-dev .kamal/secrets appspec.yml"),
    ]);
}

#[test]
fn names_of_further_tools_that_gain_trust_are_known() {
    assert_known(&[
        (
            "git",
            ".hg/hgrc .hg/store/x .jj/repo/config.toml .svn/wc.db .bzr/branch/branch.conf _darcs/prefs/defaults .gclient DEPS \
             src/PRESUBMIT.py .hgsub .arclint cog.toml .bumpversion.toml",
        ),
        (
            "build",
            ".latexmkrc latexmkrc Doxyfile Doxyfile.in _plugins/x.rb _config.yml book.toml _quarto.yml .yardopts Snakefile \
             rules/map.smk nextflow.config dvc.yaml .dvc/config _targets.R docs/make.jl .lintr .sqlfluff .ansible-lint \
             .vale.ini .gitlint .standard.yml tslint.json .cspell.json dprint.json treefmt.toml .clang-tidy .trunk/trunk.yaml \
             .clj-kondo/config.edn .markdownlint-cli2.mjs .dependency-cruiser.js codegen.ts openapitools.json alembic.ini \
             schema.prisma buf.gen.yaml sonar-project.properties .arcconfig debian/rules debian/postinst PKGBUILD APKBUILD \
             app.spec a.ebuild mkosi.conf snapcraft.yaml guix.scm .terraform/providers/x group_vars/all.yml kubeconfig.yaml \
             molecule.yml .kitchen.yml wp-cli.yml serverless.ts web.config devfile.yaml .storybook/main.js .projen/tasks.json \
             .projenrc.ts knexfile.js ormconfig.js .sequelizerc plopfile.mjs .umirc.ts truffle-config.js .solcover.js Cakefile \
             cucumber.js Dangerfile.js stryker.conf.json .changeset/config.json jest.config.json Makefile.common rules.make \
             a.ninja Jamroot default.do site_scons/site_init.py lib/tasks/x.rake x.thor Directory.Build.rsp a.tt x.targets \
             a.runsettings .gn BUILD.gn a.gni jbuild myocamlbuild.ml pavement.py .pytest.ini tox.toml profiles.clj \
             project.janet Eask Cask Eldev castor.php deploy.php robo.php config/boot.rb config/application.rb \
             app/config/initializers/x.rb config/environments/test.rb config/database.yml config/config.exs config/runtime.exs \
             features/environment.py features/support/env.rb alembic/env.py migrations/env.py build.dart hook/build.dart \
             sys.config info.rkt tuist.swift .config/nextest.toml config.guess",
        ),
        (
            "shell",
            ".RData .erlang .duckdbrc .my.cnf .flaskenv user.clj src/user.clj data_readers.clj .lldbinit-x libx.so-gdb.py \
             .shadowenv.d/1.lisp .hermit/x .ddev/config.yaml process-compose.yaml mprocs.yaml .lando.yml uwsgi.ini \
             celeryconfig.py PKG_ADD profile.do .synopsys_dc.setup .valgrindrc",
        ),
        (
            "editor",
            ".bsp/x.json .metals/x .merlin nbproject/project.properties x.Rproj x.ipr a.csproj.user .factorypath",
        ),
        ("agent", ".amp/x .qoder/rules .copilot/x"),
    ]);
}

#[test]
fn what_runs_in_the_place_of_sources_gains_trust() {
    assert_known(&[
        (
            "build",
            "src/__pycache__/x.cpython-312.pyc x.pyc x.pyo lib/x.so x.pyd x.node x.elc x.zwc x.class lib/x.jar x.beam x.o x.a \
             target/debug/deps/libx.rlib .next/server/app.js .turbo/x .dart_tool/package_config.json .gradle/x CMakeCache.txt \
             build/CMakeFiles/x .deps/x.Po",
        ),
        ("executable", "git.exe tools/npm.cmd a.BAT profile.ps1 x.vbs"),
        (
            "package",
            ".venv/lib/python3.12/site-packages/x.py venv/bin/activate env/pyvenv.cfg lib/site-packages/x.py .tox/py/x.py \
             x.egg-info/entry_points.txt x.egg-link node_modules/x/index.js a/node_modules/.bin/x vendor/autoload.php \
             vendor/composer/x.php vendor/bundle/x.rb gems.rb .config/dotnet-tools.json spago.dhall",
        ),
    ]);
}

fn assert_known(all: &[(&str, &str)]) {
    for (kind, names) in all {
        for name in names.split_whitespace() {
            assert!(kinds(name).contains(kind), "{name} is {:?}, not {kind}", kinds(name));
        }
    }
}

#[test]
fn ordinary_sources_and_texts_of_those_ecosystems_take_no_yes() {
    for name in "src/lib.rs src/main.py app/models/user.rb lib/app.ex src/Main.hs src/main/scala/App.scala project/notes.md \
         docs/policy.md belljar.md.txt src/belljar/lib.rs src/config.rs src/index.ts test/app.test.ts styles/main.css data.json \
         data.yaml config/settings.yaml index.html R/analysis.R src/App.swift src/Program.cs Sources/App/main.swift \
         requirements/readme.md deps/readme.md cmd/main.go internal/x.go src/main.zig lib/main.dart README.rst LICENSE \
         README.md lib/foo.py tests/test_x.py tests/__init__.py src/app.module.ts src/app.test.tsx src/components/App.vue \
         public/logo.svg config/routes.rb config/locales/en.yml features/login.feature spec/user_spec.rb db/schema.rb \
         migrations/0001_initial.py app/migrations/env.sql docs/index.md docs/guide.tex paper.tex _posts/a.md src/rules.rs \
         src/plugins.rb hooks/useThing.ts hook/notes.md vendor/readme.md vendor/lib/x.go debian/changelog include/x.h src/x.cpp \
         src/x.ml src/user.rs src/users.clj src/core.clj core/build.go test/data.bin notes.org Cargo.md target.md \
         src/spec.ts models/x.sql src/config.ts src/deps.ts venv.md history.md svn.txt group/vars.yml environment.py \
         src/env.py src/environment.py tasks/build.md src/site.py cache/x.json src/jobs/cleanup.rb assets/x.wasm"
        .split_whitespace()
    {
        assert_eq!(kinds(name), [""; 0], "{name}");
    }
}
