//! Tests of names of many ecosystems, each with who trusts it.

use super::tests::kinds;
use super::{ChangeEntryKind, ChangedPath, review};

#[test]
fn trusted_file_names_are_known_in_every_ecosystem() {
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
fn trusted_file_names_of_further_tools_are_known() {
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
fn files_of_command_and_template_tools_require_approval() {
    assert_known(&[
        (
            "build",
            "toxfile.py idf_ext.py pyocd_user.py Rexfile Argcfile.sh tusk.yml copier.yml hooks/pre_gen_project.py platform.txt \
             mise/config.toml config/storage.yml config/sidekiq.yml bin/rails bin/console tauri.conf.json5 Tauri.toml \
             src-tauri/tauri.linux.conf.json cypress/support/e2e.js zephyr/module.yml x.csolution.yml x.wapproj x.xproj x.vcxitems \
             task_tool.cue META-INF/services/a.B inc/Module/Install.pm spec/spec_helper.rb test/runtests.jl main.nf meta.yaml \
             sitecustomize/__init__.py usercustomize/__init__.py a/sitecustomize/x.py process-compose.override.yaml",
        ),
        ("executable", "x.com x.vbe x.jse x.wsf x.hta x.msc autorun.inf x.terminal x.inetloc x.scpt"),
    ]);
}

#[test]
fn other_spellings_of_trusted_names_require_approval() {
    assert_known(&[
        (
            "git",
            "lefthook-local.yaml lefthook-local.toml lefthook-local.json nano-staged.js nano-staged.mjs cz.toml cz.json \
             cz.yaml tbump.toml",
        ),
        (
            "build",
            "tasks/__init__.py fabfile/__init__.py locustfile/__init__.py celeryconfig/__init__.py \
             airflow_local_settings/__init__.py lib/ruby_lsp/x/addon.rb lib/tapioca/dsl/compilers/x.rb sorbet/config \
             project/src/main/scala/P.scala rel/vm.args.eex rel/env.sh.eex CTestCustom.ctest DartTestfile.txt pom.groovy pom.rb \
             pom.yaml rubygems_plugin.rb tools.ini python311._pth foo.suo texmf.cnf sgconfig.yml package-scripts.js",
        ),
        (
            "ci",
            "goreleaser.yml goreleaser.yaml Kustomization buildkite.yml buildkite/pipeline.yml jitpack.yml buddy.yml \
             screwdriver.yaml codeship-steps.yml readthedocs.yml inventory.yml inventory.ini ellipsis.yaml",
        ),
        ("agent", "SOUL.md TOOLS.md HEARTBEAT.md MEMORY.md"),
        (
            "package",
            "requirements.lock buildscript-gradle.lockfile nimble.lock luarocks.lock esy.lock/index.json spago.lock buf.lock \
             newtool.lock newtool-lock.json gemfiles/rails7.gemfile gemfiles/rails7.gemfile.lock Gemfile.next Gemfile.next.lock \
             Gemfile_next patches/x+1.0.0.patch debian/patches/series obj/project.assets.json",
        ),
    ]);
}

#[test]
fn tool_cache_files_require_approval() {
    assert_known(&[
        (
            "build",
            "target/debug/build/app-0123456789abcdef/output out/debug/build/app-0123456789abcdef/out/gen.rs \
             target/release/incremental/app-1/s-1/query-cache.bin autom4te.cache/requests a/autom4te.cache/traces.0 \
             var/cache/dev/App_KernelDevDebugContainer.php storage/framework/views/a.php tmp/cache/assets/sprockets/a.cache \
             templates_c/a.tpl.php _build/build_params _build/default/lib/x/src/x.erl build/lib/app/x.py build/generated/X.java \
             target/generated-sources/X.java _Inline/config blib/lib/X.pm nimcache/x.c cdk.out/manifest.json plan.tfplan \
             output/Main/externs.cbor a.olean a.vo __jinja2_1.cache",
        ),
        (
            "package",
            "vendor/monolog/monolog/src/Logger.php vendor/gems/x/lib/x.rb Pods/AFNetworking/X.m \
             lua_modules/share/lua/5.4/x.lua local/lib/perl5/X.pm deps/foo/lib/x.ex \
             env/bin/pip _opam/lib/x.ml managed_components/x/x.c nimbledeps/pkgs/x.nim foo.egg-info/requires.txt \
             foo-1.dist-info/METADATA renv/library/x/R/x",
        ),
    ]);
}

#[test]
fn compiled_code_requires_approval_by_every_extension() {
    assert_known(&[(
        "build",
        "libx.so.1 lib/libx.so.1.2.3 x.syso x.eln x.ji x.rdb x.rdx x.ko.xz x.ko.zst x.pyz x.pyzw x.ocx x.sys x.tlb x.jnilib \
         x.efi x.netmodule libx.1.dylib",
    )]);
}

#[test]
fn new_module_that_shadows_a_known_one_requires_approval() {
    assert_known(&[(
        "build",
        "json.py json/__init__.py JSON.py http.py http/__main__.py unittest/__init__.py pdb/__init__.py build.py build/__main__.py \
         timeit.py zipfile.py argparse.py random.pyw logging/__init__.py mypy/__init__.py coverage/__init__.py ensurepip/__init__.py \
         annotationlib.py compression/__init__.py concurrent/__init__.py pathlib/__init__.py string/__init__.py socks.py org.py \
         _colorize.py _pyrepl/__init__.py _sysconfigdata__linux_x86_64-linux-gnu.py _sysconfig/__main__.py _opcode_metadata.py \
         _pylong.py _pydatetime.py _suggestions.py _interpreters.py _android_support.py _ios_support.py _new_in_some_version.pyw",
    )]);
    let file = || Some(ChangeEntryKind::File { is_executable: false });
    let kinds_of =
        |touched| review([touched]).into_iter().map(|finding| finding.kind.code()).collect::<Vec<_>>();
    let link = || Some(ChangeEntryKind::Link { target: "lib".to_owned() });
    for path in ["json", "json.py"] {
        assert_eq!(kinds_of(ChangedPath::new(path, None, link())), ["build"], "{path}");
    }
    // Controls: other names, modules of packages, and existing files.
    for path in [
        "__init__.py",
        "__main__.py",
        "_x/y.py",
        "app/_colorize.py",
        "app/_x/__init__.py",
        "app.py",
        "app/__init__.py",
        "app/json.py",
        "src/types.py",
        "json/x.txt",
        "test/test_x.py",
        "json",
    ] {
        assert_eq!(kinds(path), [""; 0], "{path}");
    }
    for path in ["types.py", "test/__init__.py"] {
        assert_eq!(kinds_of(ChangedPath::new(path, file(), file())), [""; 0], "{path}");
    }
}

#[test]
fn files_that_run_instead_of_sources_require_approval() {
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

#[test]
fn implicitly_loaded_file_names_require_approval() {
    let names = "$irbrc .ackrc .agent/rules/x.md .aider.model.settings.yml .air.conf .angular/cache/x .asciidoctor/lib/x.rb \
         .aspire/settings.json .auto-changelog .autoenv.fish .autotest .aws-sam/build.toml .bash_history \
         .bazelbsp/config .bazelproject .betterer.ts .biome.json .bolt/prompt .buildpacks .bulldozer.yml .bun-version \
         .cargo-husky/hooks/pre-commit .ccache/x .clinerules-code .cmake-format.py .codecov.yml .coderabbit.yaml \
         .continuerc.json .continuerules .cramrc .ctags .ctags.d/x.ctags .custom-gcl.yml .cz-config.js .db-migraterc \
         .depend .deployment .detoxrc .detoxrc.json .docusaurus/x.js .dumirc.ts .env/bin/activate .erb-linters/x.rb \
         .erb_lint.yml .esdoc.json .eslintplugin.js .fatherrc.ts .firebaserc .foreman .fvm/fvm_config.json .gbp.conf \
         .gh-dash.yml .ghc.environment.x86_64-linux-9.4.7 .git-crypt/keys/x .gitallowed .gitguardian.yaml \
         .github/chatmodes/x.md .github/hooks/x.json .github/release.yml .github/settings.yml .gitlab-ci.d/x.yml .gpg-id \
         .graphqlconfig .grok/settings.json .guix-authorizations .guix-channel .haxerc .hie-bios .huskyrc.json \
         .huskyrc.yaml .iflow/settings.json .java-formatter .jdtls .jekyll-cache/x .joerc .jscsrc .jsdoc.json \
         .jupytext.py .kamal/hooks/pre-build .kamal/secrets .kateproject .kdev4/x .kodiak.toml .ladle/config.mjs \
         .lagoon.yml .lazy.lua .lazygit.yml .lighthouserc.json .lingma/rules/x.md .lintr.R .lite_project.lua \
         .lock-waf_linux_build .luacov .mdlrc .mergify.yml .mirrord/mirrord.json .mrconfig .nano-staged.json .netlify/x \
         .nlsp-settings/x.json .np-config.json .oxlintrc.json .pants.bootstrap .pants.rc .phpactor.json .phpbrewrc \
         .phpstorm.meta.php .pi/SYSTEM.md .pi/extensions/x.ts .pkgx.yaml .plzconfig.local .plzconfig_linux_amd64 \
         .policy.yml .posthtmlrc .powenv .powrc .pr_agent.toml .profile.d/x.sh .project.vim .promu.yml .prospector.yaml \
         .prototools .pullapprove.yml .puppeteerrc .puppeteerrc.json .pydistutils.cfg .pylintrc.toml .qmake.conf \
         .qmake.stash .rbenv-vars .rbenv-version .rdbgrc.rb .realize.yaml .roorules-code .ropeproject/objectdb \
         .rspec-local .rspec_parallel .rust-analyzer.toml .rust-version .rusty-hook.toml .rvmrc .safety-policy.yml \
         .sass-cache/x .sassrc .sbtrc .scalafmt.conf .sconsign.dblite .scrapy/httpcache/x/pickled_meta .scss-lint.yml \
         .secrets.baseline .semgrep.yml .semgrep/x.yml .serena/project.yml .shellspec .shellspec-local \
         .simple-git-hooks.cjs .simple-git-hooks.json .size-limit.js .size-limit.json .slim-lint.yml .sops.yaml \
         .sourcekit-lsp/config.json .sourcery.yml .spacelift/config.yml .spectral.js .spectral.yaml \
         .spyproject/config/workspace.ini .stestr.conf .streamlit/config.toml .swiftlint.yml \
         .swiftpm/configuration/mirrors.json .symfony.local.yaml .talismanrc .taskmaster/config.json .tern-project \
         .terrateam/config.yml .testcaferc.json .testr.conf .tfswitch.toml .traerules .trivyignore.yaml \
         .vagrant/machines/default/id .venomrc .versionrc .versionrc.json .versions.conf .vfox.toml .vibe/config.toml \
         .vitepress/config.mts .vuepress/config.js .west/config .xo-config.js .xo-config.json .yardoc/objects/root.dat \
         .yvmrc .zencoder/rules/x.md .zigversion AGENTS.local.md Android.bp Artifacts.toml BUCK.v2 BUILD.pants BUILD.plz \
         Blueprints CMakeSettings.json Chart.lock CppProperties.json DESCRIPTION DartConfiguration.tcl Deskfile \
         Dioxus.toml Dockerfile-dev Dockerfile_dev Dockerrun.aws.json Envoy.blade.php GROK.md IFLOW.md Jamfile.v2 \
         JuliaManifest.toml JuliaProject.toml Kptfile Kraftfile LocalValetDriver.php MODULE.bazel.lock \
         Manifest-v1.11.toml OMakefile OMakeroot OPENCODE.md OWNERS OWNERS_ALIASES PACKAGE PREUPLOAD.cfg \
         Package@swift-5.9.swift Properties/launchSettings.json ROOT Rules SConstruct.py Scarb.toml Session.vim \
         Singularity _CoqProject _config.ts _environment _extensions/x/x.lua _irbrc _metadata.yml _output.yml \
         _quarto-dev.yml _site.yml _tags aftman.toml agents.yaml allowed_signers anaconda-project.yml \
         ansible-navigator.yml ape-config.yaml appspec.yml aqua.yaml atlantis.yaml audit-ci.jsonc autotest/discover.rb \
         azure.yaml backstop.json become_plugins/x.py bentofile.yaml bin/post_compile bolt-project.yaml \
         bootstrap/cache/services.php bors.toml box.json.dist bsconfig.json btest.cfg build.gradle.dcl build.lua \
         build/.wafpickle-linux-3 build/c4che/_cache.py buildServer.json builddir/meson-private/coredata.dat buildfile \
         cagent.yaml capacitor.config.json cargo-generate.toml cdk8s.yaml celerybeat-schedule chainsaw-test.yaml cleanup \
         cliff.toml cline_mcp_settings.json cmake-variants.yaml codecept.json codecov.yml codereview.settings codex.md \
         compilation.db compiled/x_rkt.zo compose.dev.yaml conda-meta/state conda.yaml conf/layer.conf conf/local.conf \
         config.rb config.xml config/_default/config.toml config/deploy.yml config/puma/development.rb configure.win \
         cosmos.config.json dagster.yaml dapr.yaml debian/gbp.conf debian/watch dependencies.yml deploy.yaml \
         deptrac.yaml dev-requirements.txt devshell.toml dfx.json digger.yml docs/_build/doctrees/environment.pickle \
         doit.cfg eas.json elm.json env/bin/activate environment.conf eslint-local-rules.js eslint-local-rules/index.js \
         esy.json etc/conda/activate.d/x.sh execution-environment.yml fastmcp.json fbuild.bff features/x.prf feeds.conf \
         firebender.json fly.staging.toml foo.h.gch foo.mexa64 foo.oct foo.pch foundry.toml garden.yaml gbp.conf \
         gcm.cache/x.gcm gemini-extension.json gitman.yml gleam.toml go.work.sum gqlgen.yml \
         gradle/gradle-daemon-jvm.properties gradle/verification-metadata.xml graphql.config.json greptile.json \
         gtags.conf guild.yml helmfile.d/x.yaml herd.yml hiera.yaml hk.pkl hooks/hooks.json hosts hosts.ini \
         idf_component.yml infection.json5.dist intern.json inventory inventory_plugins/x.py ionic.config.json irbrc \
         jbang-catalog.json jsdoc.json jupytext.toml karate-config.js kas.yml khafile.js knip.json knip.ts known_hosts \
         kuttl-test.yaml lake-manifest.json lakefile.lean lakefile.toml lean-toolchain library.json library/x.py \
         lighthouserc.json lit.cfg lit.cfg.py lit.local.cfg lit.site.cfg.py llmk.toml local.properties \
         local.settings.json locust.conf luigi.cfg magefiles/m.go main.d mcp-config.json mcp_config.json melange.yaml \
         metadata.rb metalsmith.json migrate-mongo-config.js mirrord.json modd.conf module.yaml module_utils/x.py \
         myenv/bin/activate myst.yml nano-staged.json nanoc.yaml nbb.edn nest-cli.json nix/sources.json nose2.cfg \
         npins/sources.json obj/main.d opam openocd.cfg osv-scanner.toml packages.yml packrat/init.R pants.ci.toml \
         pdm_build.py pip.ini pip.py pip/__main__.py pkgx.yml platformio.ini podman-compose.yml porter.yaml prefect.yaml \
         prek.toml profiles.yml pylintrc.toml pylock.dev.toml pytest.py railpack.json rbs_collection.yaml readline.py \
         redocly.yaml reflex.conf release-plz.toml requirements.dev.txt requirements.yaml requirements_dev.txt \
         rescript.json rlcompleter.py robot.toml robot.yaml rokit.toml rust-analyzer.toml settings.gradle.dcl \
         shard.override.yml simple-git-hooks.json site.exp skaffold.yml sketch.yaml smithery.yaml \
         sorbet/tapioca/require.rb spin.toml src/Makevars.win strategy_plugins/x.py subprojects/x.wrap \
         supabase/config.toml supply-chain/audits.toml supply-chain/config.toml sweep.yaml symfony.lock teamsapp.yml \
         template template.yaml terraform.tfstate test-requirements.txt test/mocha.opts test_plugins/x.py tests.edn \
         tlconfig.lua tmp/cache/bootsnap/compile-cache-iseq/x tools/build_rules/prelude_bazel top.sls trivy.yaml \
         turbo.jsonc tye.yaml typedoc.json vale.ini vars_plugins/x.py vendir.yml venv.py vercel.ts vfox.toml \
         vlt-lock.json vlt.json wails.json west.yml workflow/profiles/default/config.yaml workspace.yaml x.MODULE.bazel \
         x.SlackBuild x.aar x.agda-lib x.androidproj x.bazelproject x.builds x.bundle x.bxl x.cbp x.cma x.cmxs \
         x.container x.containerfile x.dcu x.def x.dproj x.egg x.ez x.fasl x.garden.yml x.geany x.groupproj x.hi \
         x.install x.ipkg x.kdev4 x.lpi x.luac x.msbuildproj x.nsi x.nuspec x.o.do x.opam.locked x.phar \
         x.playground/contents.xcplayground x.post-install x.ppu x.qbs x.qlf x.slnf x.sublime-build x.tfstate x.whl \
         x.xcworkspace/contents.xcworkspacedata zbpack.json zensical.toml zizmor.yml";
    let unknown: Vec<&str> = names.split_whitespace().filter(|name| kinds(name).is_empty()).collect();
    assert_eq!(unknown, [""; 0]);
}

#[test]
fn generic_name_patterns_require_approval() {
    assert_known(&[
        (
            "build",
            ".newtoolrc .newtoolrc.json .newtool.yaml .newtool/x sub/.newtool/a/b.txt model.pkl a.pickle x.joblib b.gch",
        ),
        ("package", "requirements_all.txt lint-requirements.txt pylock.all.toml new-env/bin/activate.fish"),
        ("review", ".gitignore .dockerignore .npmignore sub/.gcloudignore .newignore"),
    ]);
}

#[test]
fn common_program_leftovers_need_no_approval() {
    for name in ".pytest_cache/v/cache/lastfailed .mypy_cache/3.12/x.data.json .ruff_cache/0.6/1 .coverage sub/.gitkeep \
         .hypothesis/examples/a requirements.md package.md template.html hosts.md server.js src/app/__main__.py"
        .split_whitespace()
    {
        assert_eq!(kinds(name), [""; 0], "{name}");
    }
}

fn assert_known(all: &[(&str, &str)]) {
    for (kind, names) in all {
        for name in names.split_whitespace() {
            assert!(kinds(name).contains(kind), "{name} is {:?}, not {kind}", kinds(name));
        }
    }
}

#[test]
fn ordinary_sources_and_texts_need_no_approval() {
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
         src/env.py src/environment.py tasks/build.md src/site.py cache/x.json src/jobs/cleanup.rb assets/x.wasm \
         app/tasks/__init__.py docs/memory.md docs/tools.md src/lock.rs lockfile.md patches/readme.md vendor/lib/x.go \
         src/build/mod.rs build/lib/x.ts lib/cache/x.rb src/target/mod.rs deps/hiredis/x.c pods/list.go src/notes.so.txt \
         deploy.sh build.sh scripts/run-tests.sh src/setup.c main.s rcs/client.go s.py"
        .split_whitespace()
    {
        assert_eq!(kinds(name), [""; 0], "{name}");
    }
}
