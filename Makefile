# Front door; the build itself is CMake's. BUILD=dir chooses the build folder, CC=clang the compiler.
BUILD ?= build
JOBS ?= $(shell nproc)
CMAKE_FLAGS ?=
CTEST_FLAGS ?=

.PHONY: all demo test quick test-distributions test-pytorch test-dry-run test-dry-libraries test-fit test-serving test-serving-published exam test-tensorflow test-jax test-jax-versions test-numba test-howto test-genuine test-driver-semantics gpu-check sanitize coverage fuzz loss-matrix bench bench-check lint format install portable deb clean help

# A build folder that was copied or moved would build, and test, the tree it came from.
all: $(BUILD)/Makefile ## build libgpumem.so, gpumem and the simulator
	@here=$$(sed -n 's/^CMAKE_HOME_DIRECTORY:INTERNAL=//p' $(BUILD)/CMakeCache.txt); \
	there=$$(sed -n 's/^CMAKE_CACHEFILE_DIR:INTERNAL=//p' $(BUILD)/CMakeCache.txt); \
	{ [ "$$here" -ef . ] && [ "$$there" -ef $(BUILD) ]; } || \
	{ echo "$(BUILD)/ was made for $$here in $$there: remove it (make clean)" >&2; exit 1; }
	cmake --build $(BUILD) -j $(JOBS)

$(BUILD)/Makefile: # written last: a configuration that failed is tried again
	cmake -S . -B $(BUILD) $(CMAKE_FLAGS)

demo: all ## record a training loop with a planted leak and report on it
	./scripts/run-demo $(BUILD)

test: all ## all tests, on the simulator
	ctest --test-dir $(BUILD) --output-on-failure -j $(JOBS) $(CTEST_FLAGS)

quick: all ## the tests that take less than two seconds each, a minute in all
	ctest --test-dir $(BUILD) --output-on-failure -j $(JOBS) -L quick $(CTEST_FLAGS)

test-distributions: ## demo and tests on Debian 12, 13 and unstable, with gcc and clang (root; downloads them)
	./scripts/test-distributions

test-pytorch: all ## the real PyTorch wheel on the simulator (downloads it)
	./tests/torch/run_wheel $(BUILD)

test-dry-run: all ## the real PyTorch wheel, run dry: whether programs would fit (downloads it)
	./tests/dry/run_wheel $(BUILD)

test-fit: all ## the real PyTorch wheel: the largest values that gpumem fit finds, and the runs that it takes (downloads it)
	./tests/dry/run_fit $(BUILD)

test-dry-libraries: all ## programs of Transformers, TRL, PEFT, Lightning, DeepSpeed, YOLO and more, run dry (downloads them: 8 GB installed)
	./tests/dry/libraries/run_libraries $(BUILD)

test-serving: all ## the real vLLM, run dry with a model of two layers, in four minutes (downloads it: 8 GB installed)
	./tests/serving/run_serving $(BUILD)

test-serving-published: all ## starts of vLLM that people published, run dry: minutes each (downloads vLLM)
	./tests/serving/run_serving $(BUILD) published

exam: all ## programs as people write them, on the real PyTorch: what the findings say of each
	./tests/torch/exam/run_exam $(BUILD)

test-tensorflow: all ## the real TensorFlow on the simulator (downloads it)
	./tests/xla/run_xla $(BUILD) tensorflow

test-jax: all ## the real JAX on the simulator (downloads it)
	./tests/xla/run_xla $(BUILD) jax

test-jax-versions: all ## JAX 0.6 to the newest, CPython 3.11 to 3.14 (downloads some 20 GB)
	./tests/xla/run_jax_versions $(BUILD)

test-howto: all ## the pages of docs/howto, with the real programs where these are installed
	./tests/docs/run_howto $(BUILD)

test-numba: all ## the real Numba on the simulated driver (downloads it)
	./tests/numba/run_numba $(BUILD)

test-genuine: all ## NVIDIA's own drivers, runtimes and libraries, without a GPU (downloads them; none is installed)
	./tests/genuine/run_genuine $(BUILD)

test-driver-semantics: all ## rules of NVIDIA's text that the accounting stands on, on the simulator; gpu-check asks a GPU
	./scripts/gpu-check --simulator $(BUILD) "driver semantics"

gpu-check: all ## try it on a genuine GPU with what is installed there
	./scripts/gpu-check --build $(BUILD)

sanitize: ## the end-to-end tests under AddressSanitizer, UBSan and ThreadSanitizer
	./scripts/sanitize

coverage: ## the share of preload/ and report/ that the tests run, line by line (90 % at least)
	./scripts/coverage

fuzz: ## hostile traces, snapshots, rules, baselines and options, under libFuzzer (needs clang), for MINUTES=30 each
	./scripts/fuzz $(or $(MINUTES),30)

loss-matrix: all ## what each way of ending leaves in the trace; updates docs/reliability.md
	tests/e2e/life/loss.py $(BUILD) --write docs/reliability.md

bench: all ## cost per event beside heaptrack's; writes docs/benchmarks.md
	./scripts/bench $(BUILD) --write

bench-check: all ## instructions per event against the history: half a minute
	./scripts/bench-check $(BUILD)

lint: ## clang-format, clang-tidy, cppcheck, shellcheck, ruff, each in the version of lint-requirements.txt
	./scripts/lint

format: ## the sources as clang-format has them, in the version of lint-requirements.txt
	./scripts/lint --format

install: all ## install to PREFIX (/usr/local), below DESTDIR
	DESTDIR="$(DESTDIR)" cmake --install $(BUILD) $(if $(PREFIX),--prefix "$(abspath $(PREFIX))")

portable: ## the wheel for pip install and a tarball, for glibc 2.28 and later; ARCH=aarch64 for the other
	./scripts/build-portable $(if $(ARCH),--arch $(ARCH))

deb: ## the Debian package, checked by lintian
	./scripts/build-deb

clean: ## remove the build folder
	rm -rf $(BUILD)

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' Makefile | expand -t 20
