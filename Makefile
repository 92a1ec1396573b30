# Noisebook. `make` alone prints the map.
#
# A stage (a notebook) re-runs when, and only when, the contents of what it rests on changed: its cells, its own slice of the
# profile, the code that it imports, or what the stages before it made. `nbhelpers.stages wanted` writes a digest of the first three into
# build/PROFILE/stamps/STAGE.wanted and leaves the file alone when nothing changed; STAGE.made has the digest of what came out.

PROFILE ?= quick
PYTHON  ?= python3
PY      ?= .venv/bin/python
STAGES  := 00-machine 10-trace-collection 15-account 20-delta-config 30-injection 35-planted-anomaly 37-worst-runs 40-mitigations 50-attribution 52-known-causes 55-mitigate-and-compare 60-openmp-variability 70-noise-signatures 75-mpi-at-scale 80-noise-at-scale 82-this-machine-at-scale 85-stragglers 90-paper
C_PARTS := $(wildcard injector_c/*.c injector_c/*.h injector_c/*.py simulator_c/*.[ch] simulator_c/*.py workloads/*.c workloads/*.h workloads/Makefile workloads/sycl/* workloads/mpi/*) setup.py pyproject.toml

# --- what was asked for: names are checked before anything is installed ----------------------------------------------------

# make expands a $ in what it is given: the name of a file that somebody sent would run as a command, so this comes before all else.
expanded := $(strip $(foreach name,DATA PROFILE OUTPUT NAMES LAB,$(if $(findstring $$,$(value $(name))),$(name))))
ifneq ($(expanded),)
$(error $(firstword $(expanded)) has a $$ in it, which make would expand: $(value $(firstword $(expanded))). Rename the file)
endif

# A new target is known by its rule; a new setting that is given as NAME=value on the command line is added here.
TARGETS   := $(shell sed -n 's/^\([a-z][a-z-]*\):.*/\1/p' Makefile)
SETTINGS  := PROFILE PYTHON PY STAGES CC CFLAGS OPENMP SECOND CXX SYCLCXX MPICC ACCEPT_LICENCE FAULTS PRIV_GROUP COMMAND SHORT LAB DATA NAMES OUTPUT
BUILTIN   := smoke quick full paper record recorded
RESERVED  := $(BUILTIN) bin lib sycl mpi docs lab
PROFILES  := $(BUILTIN) $(filter-out $(BUILTIN),$(notdir $(basename $(wildcard notebooks/parameters/*.yml))))

quoted   = '$(subst ','\'',$(1))'
python   := $(call quoted,$(PY))
RUN      := $(python) -m nbhelpers.stages
capitals = $(shell printf %s $(call quoted,$(1)) | tr a-z A-Z)
nearest  = $(shell $(PYTHON) -c 'import difflib, sys; print(*difflib.get_close_matches(sys.argv[1].lower(), sys.argv[2:], 1))' \
  $(call quoted,$(1)) $(2) 2>/dev/null)
# $(call hint,what is typed before it,the nearest name,all names)
hint     = $(if $(2),Did you mean: $(1)$(2)?,Known: $(3))

given := $(foreach name,$(.VARIABLES),$(if $(filter command,$(word 1,$(origin $(name)))),$(name)))
unknown := $(firstword $(filter-out $(SETTINGS) MAKE% GNUMAKEFLAGS -%,$(given)))
ifneq ($(filter $(SETTINGS),$(call capitals,$(unknown))),)
$(error There is no setting '$(unknown)'. Write it in capitals: make $(MAKECMDGOALS) $(call capitals,$(unknown))=$($(unknown)))
else ifneq ($(unknown),)
$(error There is no setting '$(unknown)'. $(call hint,,,$(SETTINGS)))
endif

unknown := $(firstword $(filter-out $(TARGETS) build/% .venv/%,$(MAKECMDGOALS)))
ifneq ($(filter $(PROFILES),$(unknown)),)
$(error '$(unknown)' is a profile, not a target. Type: make paper PROFILE=$(unknown))
else ifneq ($(unknown),)
$(error There is no target '$(unknown)'. $(call hint,make ,$(call nearest,$(unknown),$(TARGETS)),$(TARGETS)))
endif

# Data that somebody shared (a zip of `make artifact`, or its unpacked folder) name their study: build/shared-NAME.
ifneq ($(DATA),)
ifeq ($(shell test -r $(call quoted,$(DATA)) && echo yes),)
$(error There is no '$(DATA)' that this user can read. DATA is a zip that make artifact wrote, or the folder that it was unpacked to)
endif
ifeq ($(origin PROFILE),command line)
$(error DATA brings its own profile: leave PROFILE out, or DATA)
endif
NAME := shared-$(shell basename -- $(call quoted,$(DATA)) .zip | sed 's/^noisebook-//; s/[^A-Za-z0-9_-]/-/g')
override PROFILE := $(NAME)
# One's own profile is named by its file, whose path may hold a blank; its study lies in build/NAME.
else ifneq ($(filter %.yml %.yaml,$(lastword $(PROFILE))),)
NAME := $(shell name=$$(basename -- $(call quoted,$(PROFILE))); printf %s "$${name%.y*ml}")
ifeq ($(shell test -f $(call quoted,$(PROFILE)) && test -r $(call quoted,$(PROFILE)) && echo yes),)
$(error There is no file '$(PROFILE)' that this user can read. To begin a profile: cp notebooks/parameters/quick.yml mine.yml, then PROFILE=mine.yml)
endif
ifneq ($(shell printf %s $(call quoted,$(NAME)) | tr -d A-Za-z0-9_-)$(filter $(RESERVED),$(NAME)),)
$(error '$(NAME)' cannot be the name of a profile: letters, digits, - and _ only, and none of $(RESERVED). Rename the file)
endif
else
NAME := $(strip $(PROFILE))
ifeq ($(NAME),)
$(error PROFILE is empty. Choose one: PROFILE=smoke, quick, full, paper or recorded)
else ifneq ($(words $(NAME))$(filter $(NAME),$(PROFILES) $(notdir $(patsubst %/profile.yml,%,$(wildcard build/*/profile.yml)))),1$(NAME))
$(error There is no profile '$(NAME)'. $(call hint,PROFILE=,$(call nearest,$(NAME),$(PROFILES)),$(PROFILES); one of your own: PROFILE=path/to/mine.yml))
endif
endif
B := build/$(NAME)
S := $(B)/stamps

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.SUFFIXES:
.PHONY: $(TARGETS) FORCE

says = $(shell sed -n 's/^\#: *$(1)  *\([0-9-]* [a-z]*\) .*/\1/p' Makefile)

help:
	@sed -n 's/^#: \{0,1\}//p' Makefile

#: Noisebook: why does a parallel program not take the same time twice?
#:
#:   target              time here*   what it does, and what it needs
#:   make paper          15 min       the whole study on this machine, ending in a page of answers (build/PROFILE/paper); a C compiler
#:                                    with OpenMP, make, Python 3.11 or later; root for the full method, less without
#:   make test           10 min       the short tests
#:   make check          30 s         layout, lint and types of our Python and C; make format writes the layout
#:   make test-all       52 min       all tests; first installs what the optional ones need (says what; root on Debian or Ubuntu)
#:                                    (that is with CI=true; without it seven whole studies more, each without some parts: not timed)
#:   make test-faults    25 min       disturbs 330 real campaigns (signals, full disks, hidden processes, …) and prints what was lost or left
#:   make test-gpu       1 min        metrics and mitigations proven on a GPU of NVIDIA; says so where there is none
#:   make bare           30 min       this page's words on bare systems, as root and as a user (root, mmdebstrap)
#:   make doctor         10 s         what this machine can and cannot do, and the command that mends it
#:   make privileged     1 s          sudo make privileged: lets a small helper do what takes root, for your group alone (SECURITY.md)
#:   make study          5 min        one's own program: make study COMMAND='./prog args' (noisebook why -- ./prog args)
#:   make docs           1 min        reference, glossary, four first changes: build/docs/index.html
#:   make lab            -            JupyterLab: the notebooks' questions and answers, and copies of them to work with (build/lab);
#:                                    on recorded data, or those of PROFILE; LAB='--no-browser --port 8889' for JupyterLab's own options
#:   make env            1-2 min      only the environment (.venv) and the C parts (done by the others when needed)
#:   make artifact       1 min        the study as one zip to hand over; make paper DATA=that.zip makes its tables again, anywhere
#:   make measure-again  1 s          keeps this profile's data aside (never deletes them); the next `make paper` measures anew
#:   make sycl           1 min        an optional extra: the SYCL programs and Intel's runtime for them (482 MB; says its licence, asks for consent)
#:   make mpi            10 s         an optional extra: Open MPI and mpi4py (4 MB), and the MPI programs; MPICC=mpicc takes an installed MPI
#:   make clean          1 s          removes what was computed; measured data stay
#:   make bench          10 min       figures of speed, each beside a rival or a bound
#:   make lock           10 s         resolves requirements.lock anew (needs uv)
#:
#:   PROFILE=smoke       6 min        every stage with a handful of runs: does it work at all? (no conclusions)
#:   PROFILE=quick       (default)    a small study on any machine
#:   PROFILE=full        hours, or days on 32 cores: the papers' counts: 1000 baseline and 200 injected runs a configuration
#:   PROFILE=paper       days on 32 cores: the papers' sizes, too: run lengths, iterations, arrays, numbers of threads
#:   PROFILE=recorded    10 min       no privilege, any machine: the tables of the recorded campaign (data/recorded)
#:
#:   OUTPUT=s3://…       each executed notebook is written there, too: any path of papermill (s3, gs, abs, adl, https), or a folder
#:   DATA=that.zip       what make artifact wrote, or the folder it was unpacked to: its tables again, without root, without measuring
#:   NAMES=keep          make artifact leaves names of host and user in; NAMES='node7 ann' replaces these, too
#:
#:   * on two virtual cores. One stage alone: make build/quick/stamps/20-delta-config.done

paper: $(S)/90-paper.done
	@$(RUN) account --profile $(NAME)

# --- the environment ------------------------------------------------------------------------------------------------------

env: build/c-parts

CHECK = GOAL='$(firstword $(MAKECMDGOALS) paper)' CC='$(CC)' OPENMP='$(or $(OPENMP),-fopenmp)' sh workloads/check.sh

ifeq ($(PY),.venv/bin/python)
ENV := .venv/installed
$(ENV): requirements.lock
	@PYTHON='$(PYTHON)' $(CHECK) environment
	@echo "Installing the environment into .venv: 1 to 2 minutes, 1 GB of disk; then the C parts, 20 seconds"
	@$(PYTHON) -m venv --clear .venv
	@.venv/bin/python -m pip install --quiet --disable-pip-version-check --no-compile --require-hashes -r requirements.lock || { \
	  echo "The environment is not installed: pip's own message stands above. Where packages come from is pip's setting (pip config list); the same command tries again"; exit 1; }
	@PYTHONWARNINGS=ignore .venv/bin/python -m compileall -qq -j 0 .venv/lib || true # on all CPUs; pip has one for it
	@touch $@
endif

build/c-parts: $(ENV) $(C_PARTS)
	@PYTHON=$(python) $(CHECK)
	@mkdir -p build/bin
	@echo "Building the C parts (20 seconds)"
	@$(MAKE) --no-print-directory -s -C workloads BIN=../build/bin
	@$(python) -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e . || { \
	  echo "The injector did not build: the compiler's own message stands above"; exit 1; }
	@PY=$(python) sh workloads/sycl/install.sh again || echo "The SYCL programs did not build anew; all else did. To try again: make sycl"
	@PY=$(python) sh workloads/mpi/install.sh again || echo "The MPI programs did not build anew; all else did. To try again: make mpi"
	@touch $@

# --- the stages -----------------------------------------------------------------------------------------------------------

WANTED := $(STAGES:%=$(S)/%.wanted)
DONE   := $(STAGES:%=$(S)/%.done)
MADE   := $(STAGES:%=$(S)/%.made)
.PRECIOUS: $(WANTED) $(DONE) $(MADE)

# The whole profile is checked before the C parts are built and the first stage runs (it is YAML: that takes the environment).
# Which optional programs there are, and how long it takes here, is known when the C parts are built.
$(S)/checked: $(ENV) FORCE
	@$(if $(DATA),$(python) -m nbhelpers.artifact unpack $(call quoted,$(DATA)) --profile $(NAME))
	@$(RUN) check --profile $(call quoted,$(PROFILE)) $(STAGES)
	@mkdir -p $(S) && touch $@
$(S)/planned: $(S)/checked build/c-parts FORCE
	@$(RUN) wanted --profile $(NAME) $(STAGES)
	@touch $@
$(WANTED): $(S)/planned ; @:

$(DONE): $(S)/%.done: $(S)/%.wanted
	@$(RUN) run $* --profile $(NAME)$(if $(OUTPUT), --output=$(call quoted,$(OUTPUT)))
	@touch $@
$(MADE): $(S)/%.made: $(S)/%.done ; @:

$(S)/10-trace-collection.done: $(S)/00-machine.made
$(S)/15-account.done: $(S)/10-trace-collection.made
$(S)/20-delta-config.done: $(S)/10-trace-collection.made
$(S)/30-injection.done: $(S)/10-trace-collection.made $(S)/20-delta-config.made
$(S)/35-planted-anomaly.done: $(S)/10-trace-collection.made
$(S)/37-worst-runs.done: $(S)/10-trace-collection.made
$(S)/40-mitigations.done: $(S)/20-delta-config.made
$(S)/50-attribution.done: $(S)/10-trace-collection.made $(S)/35-planted-anomaly.made
$(S)/55-mitigate-and-compare.done: $(S)/52-known-causes.made
$(S)/70-noise-signatures.done: $(S)/00-machine.made
$(S)/82-this-machine-at-scale.done: $(S)/00-machine.made $(S)/10-trace-collection.made
$(S)/85-stragglers.done: $(S)/00-machine.made
$(S)/90-paper.done: $(filter-out %/90-paper.made,$(MADE))

# --- the rest -------------------------------------------------------------------------------------------------------------

# Tests that neither measure nor change the machine share the CPUs; then come those that do, one by one. On a shared machine one of a
# thousand measurements is disturbed by others: of these, what fails is run up to twice more, and the summary names it.
TOGETHER := tests/account/test_occupied.py tests/account/test_table.py tests/artifact tests/statistics tests/attribution tests/explorers tests/fuzz tests/noise tests/paper tests/report tests/simulation tests/training \
  $(patsubst %,tests/test_%.py,absent_promises bounded_readers code_state house imports lab make page pages profiles progress readers recorded stages warnings words) \
  $(patsubst %,tests/injection/test_%.py,log plan) $(patsubst %,tests/mitigation/test_%.py,knowledge language_model trials) \
  $(patsubst %,tests/studies/test_%.py,answers answers_findings answers_runs false_verdicts ferreira findings persson_answers persson_panels persson_selection program_verdicts published_sizes scale stragglers host_noise \
    scale_extremes scale_machine_simulations scale_simulations tables trial_verdict) \
  $(patsubst %,tests/tracing/test_%.py,foreign missing_switches mutations netduration osnoise osnoise_columns cached_events ringbuffer) $(patsubst %,tests/workloads/test_%.py,configuration description)
# One formatter for each language, one linter, one type checker (pyproject.toml, .clang-format): `format` writes, `check` only looks.
OUR_C := $(shell find benchmarks injector_c simulator_c tests workloads -name '*.[ch]' ! -name '_*')
CLANG_FORMAT = $(python) -c 'from clang_format import clang_format as main; main()'
CHECKS = unclean=0; \
  $(python) -m ruff format --check --quiet . || unclean=1; \
  $(python) -m ruff check --quiet --output-format concise . || unclean=1; \
  $(CLANG_FORMAT) --dry-run -Werror $(OUR_C) || unclean=1; \
  $(python) -m mypy --no-error-summary || unclean=1; \
  test $$unclean = 0 || echo "make check: not clean (see above). make format writes the layout; the rest is for a person"; \
  test $$unclean = 0
check: $(ENV)
	@$(CHECKS)

format: $(ENV)
	@$(python) -m ruff check --quiet --fix-only .
	@$(python) -m ruff format --quiet .
	@$(CLANG_FORMAT) -i $(OUR_C)

SHORT := -m "not long"
SHARING = $(python) -m pytest $(SHORT) -n auto --maxprocesses 8 --dist worksteal $(TOGETHER)
test-sharing: build/c-parts
	@$(SHARING)

test: build/c-parts
	@echo "make test: about $(call says,make test); first the tests that share the CPUs, then those that measure"
	@failed=0; \
	{ $(CHECKS); } || failed=1; \
	$(SHARING) || failed=1; \
	$(python) -m pytest $(SHORT) --reruns 2 $(TOGETHER:%=--ignore=%) || failed=1; \
	exit $$failed

# Everything that can be tested here, with every optional part that can be had; at the end, what was skipped, and why, and what failed.
test-all: build/c-parts
	@sh tests/optional.sh
	@mkdir -p build; { $(MAKE) --no-print-directory test SHORT= PY=$(python); echo $$? >build/test-all.status; } 2>&1 | \
	  tee build/test-all.log
	@awk -f tests/summary.awk build/test-all.log; exit $$(cat build/test-all.status)

# FAULTS='500 --seed 7 --kind SIGSTOP' tries others.
test-faults: build/c-parts
	@$(python) -m tests.faults $(or $(FAULTS),330)

# On a machine with a GPU: its metrics and mitigations, proven on it. Elsewhere one line says why not.
test-gpu: build/c-parts
	@why=$$($(python) -m tests.gpu.why_not) || exit 1; \
	if [ -n "$$why" ]; then echo "make test-gpu: skipped: $$why"; else $(python) -m pytest -q -rs tests/gpu tests/mitigation/test_gpu.py; fi

bare:
	@bash tests/bare/all

study: build/c-parts
	@$(RUN) study --command "$$COMMAND"

privileged:
	@PRIV_GROUP='$(PRIV_GROUP)' sh workloads/install_privileged.sh

doctor: build/c-parts
	@$(python) -m nbhelpers.promise --profile $(NAME)

docs: build/c-parts
	@$(python) -c "import sphinx, numpydoc, myst_parser" 2>/dev/null || { \
	  echo "make docs needs Sphinx, numpydoc and myst-parser: make env installs them; or $(PY) -m pip install sphinx numpydoc myst-parser"; exit 1; }
	@$(python) -m sphinx -W --keep-going -q -b html docs build/docs
	@echo "See build/docs/index.html"

lab: build/c-parts
	@$(python) -m nbhelpers.lab open --profile $(if $(filter file,$(origin PROFILE)),recorded,$(call quoted,$(PROFILE))) $(LAB)

sycl: build/c-parts
	@echo "make sycl: about $(call says,make sycl) and 482 MB"
	@PY=$(python) sh workloads/sycl/install.sh

mpi: build/c-parts
	@PY=$(python) MPICC=$(call quoted,$(if $(filter command,$(origin MPICC)),$(MPICC))) sh workloads/mpi/install.sh

bench: build/c-parts
	@for b in benchmarks/[a-z]*.py benchmarks/*/*.py; do echo "== $$b"; $(python) $$b || exit 1; done

artifact: $(ENV)
	@$(python) -m nbhelpers.artifact pack --profile $(NAME) --names=$(call quoted,$(NAMES))

measure-again: build/c-parts
	@$(RUN) measure-again --profile $(NAME)

clean:
	@rm -rf docs/reference build/docs build/bin build/c-parts build/*/notebooks build/*/pages build/*/results build/*/stamps build/*/paper build/lib build/lib.* build/temp.* build/bdist.*
	@for d in build/*/data build/*/kept; do [ -d $$d ] && echo "kept: $$d (measured data; delete by hand if you must)"; done; true

lock:
	$(python) -c "import tomllib; p = tomllib.load(open('pyproject.toml', 'rb')); q = p['project']; \
	  print('\n'.join(q['dependencies'] + sum(q['optional-dependencies'].values(), []) + p['build-system']['requires']))" | \
	  uv pip compile --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-annotate --no-header - -o requirements.lock
