# A stage's .wanted is rewritten only when what it rests on changed.
#:Noisebook: why does a parallel program not take the same time twice? (two cores)
#:
#:  make paper      16 min   the whole study on this machine: build/PROFILE/paper; as root the full method
#:  make test       5 min    the tests; make check, make format: layout, lint, types, sizes
#:  make lab                 JupyterLab on copies of the notebooks; LAB='--port 8889'
#:  make doctor     10 s     what this machine can measure, and what mends the rest
#:  make env        2 min    environment (.venv) and C parts; make docs: the reference
#:  make artifact   1 min    the study as a zip; make measure-again keeps data aside; make clean
#:  make mpi        1 min    Open MPI, as make paper does; MPICC=/path/of/mpicc: the site's own
#:  make sycl                optional; so are make originals, extra EXTRA=NAME, privileged
#:
#:  PROFILE=smoke   6 min    a few runs; full: hours; paper: days on 32 cores; path/to/mine.yml: yours
#:  PROFILE=recorded 5 min   recorded tables, no root; DATA=that.zip: its tables
PROFILE ?= quick
PYTHON ?= python3
PY ?= .venv/bin/python
export PYTHON PY

# make expands a $$: the name of a file that somebody sent would run as a command.
dollar := $(strip $(foreach n,DATA PROFILE NAMES LAB EXTRA,$(if $(findstring $$,$(value $n)),$n)))
ifneq ($(dollar),)
$(error $(firstword $(dollar)) has a $$ in it: rename the file)
endif
q = '$(subst ','\'',$(1))'
python := $(call q,$(PY))
STAGE := $(python) -m nbhelpers
plain = $(shell basename -- $(call q,$(1)) | sed 's/^noisebook-//; s/\.\(zip\|ya*ml\)$$//; s/[^A-Za-z0-9_-]/-/g')
NAME := $(if $(DATA),shared-$(call plain,$(DATA)),$(call plain,$(PROFILE)))
S := build/$(NAME)/stamps
.DEFAULT_GOAL := help
.PHONY: help paper env check format test doctor lab docs extra artifact mpi sycl originals privileged measure-again clean FORCE
help:
	@sed -n 's/^#://p' Makefile
paper: $(S)/90-paper.done
	@echo "Open build/$(NAME)/paper/index.html"

ALONE = flock build/.lock
CHECK = GOAL=$(firstword $(MAKECMDGOALS) paper) sh workloads/check.sh
ifeq ($(PY),.venv/bin/python)
ENV := .venv/installed
$(ENV): requirements.lock
	@$(CHECK) environment && sh workloads/environment.sh
endif
env: build/c-parts
build/c-parts: $(ENV) $(wildcard injector_c/* simulator_c/* workloads/*.[ch] workloads/Makefile workloads/sycl/* workloads/mpi/*) setup.py pyproject.toml
	@PYTHON=$(python) $(CHECK)
	@mkdir -p build/bin && $(ALONE) $(MAKE) --no-print-directory -s -C workloads BIN=../build/bin
	@$(ALONE) $(python) -m pip install -q --disable-pip-version-check --no-deps --no-build-isolation -e .
	@for part in sycl mpi; do sh workloads/$$part/install.sh again || echo "Not built anew; to try again: make $$part"; done
	@touch $@

EXTRA_STAGES := $(shell $(python) -m nbhelpers.extras 2>/dev/null)
STAGES := $(filter-out 01-% 02-%,$(basename $(notdir $(wildcard notebooks/[0-9]*.ipynb))))
STAGES := $(sort $(STAGES) $(EXTRA_STAGES))
WANTED := $(STAGES:%=$(S)/%.wanted)
DONE := $(STAGES:%=$(S)/%.done)
MADE := $(STAGES:%=$(S)/%.made)
$(S)/checked: $(ENV) FORCE
	@$(if $(DATA),$(python) -m nbhelpers unpack --profile $(NAME) $(call q,$(DATA)))
	@$(STAGE) check --profile $(call q,$(if $(DATA),$(NAME),$(PROFILE)))
	@mkdir -p $(S) && touch $@
$(S)/planned: $(S)/checked build/c-parts FORCE
	@$(if $(filter smoke recorded,$(PROFILE))$(DATA)$(wildcard build/mpi/compiler build/mpi/tried),,MPICC= sh workloads/mpi/install.sh || { mkdir -p build/mpi && touch build/mpi/tried && echo "Without an MPI: make mpi"; })
	@$(STAGE) wanted --profile $(NAME) $(STAGES) && touch $@
$(WANTED): $(S)/planned ; @:
$(DONE): $(S)/%.done: $(S)/%.wanted
	@$(STAGE) stage $* --profile $(NAME) && touch $@
$(MADE): $(S)/%.made: $(S)/%.done ; @:
after = $(1:%=$(S)/%.done): $(2:%=$(S)/%.made)
$(call after,10-trace-collection 70-noise-signatures $(EXTRA_STAGES),00-machine)
$(call after,15-account 35-planted-anomaly,10-trace-collection)
$(call after,20-delta-config 37-worst-runs,10-trace-collection 15-account)
$(call after,30-injection,10-trace-collection 15-account 20-delta-config)
$(call after,40-mitigations,20-delta-config)
$(call after,42-fairness,40-mitigations)
$(call after,50-attribution,10-trace-collection 35-planted-anomaly)
$(call after,82-this-machine-at-scale,00-machine 10-trace-collection)
$(call after,95-machines,00-machine 40-mitigations 60-openmp-variability)
$(S)/90-paper.done: $(filter-out %/90-paper.done,$(DONE))
CHECK_ALL = sh tests/check.sh
TEST = $(python) -m pytest -m
BESIDE = $(TEST) "not long and not alone"
check format: $(ENV)
	@$(CHECK_ALL) $@
test: export PYTHONDONTWRITEBYTECODE =  # or every program compiles the library
# what failed beside others counts if it fails alone, too
test: build/c-parts
	@s=0; $(CHECK_ALL) || s=1; \
	  $(BESIDE) -n auto --maxprocesses 8 --dist worksteal || $(BESIDE) --lf --lfnf=none || s=1; \
	  $(TEST) "alone and not long" --reruns 2 || s=1; exit $$s
doctor: build/c-parts
	@$(python) -m nbhelpers doctor --profile $(NAME)
lab: build/c-parts
	@$(python) -m nbhelpers lab --profile $(if $(filter file,$(origin PROFILE)),recorded,$(call q,$(PROFILE))) -- $(LAB)
docs: build/c-parts
	@$(python) -m sphinx -W --keep-going -q -b html docs build/docs && echo "Open build/docs/index.html"
mpi sycl originals: build/c-parts
	@MPICC=$(call q,$(if $(filter command,$(origin MPICC)),$(MPICC))) sh workloads/$@/install.sh
privileged:
	@sh workloads/install_privileged.sh
extra: $(if $(wildcard extras/$(EXTRA)/pyproject.toml),build/c-parts)
	@sh extras/install.sh $(call q,$(EXTRA))
artifact: $(ENV)
	@$(python) -m nbhelpers pack --profile $(NAME) --names=$(call q,$(NAMES))
measure-again:
	@[ ! -d build/$(NAME)/data ] || { d=build/kept/$(NAME)/$$(date +%FT%H-%M-%S) && mkdir -p build/kept/$(NAME) && mv build/$(NAME) $$d && echo "kept: $$d"; }
clean:
	@rm -rf docs/reference build/docs build/bin build/c-parts build/*/notebooks build/*/pages build/*/results build/*/stamps build/*/paper build/*/manifest.json
	@echo "Data stay: build/*/data, kept"
