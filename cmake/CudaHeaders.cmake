# Finds the CUDA headers and sets GPUMEM_CUDA_INCLUDE: CUDA_HOME, nvcc on PATH, the usual prefixes,
# and last the pip package nvidia-cuda-runtime, unpacked into the build folder. Only the simulator and
# the tests need them; the preload and the report do not. The simulator implements CUDA 13.0 as its headers
# declare it, so it is built with exactly these, whatever toolkit the machine has. It builds with those of
# 13.1 to 13.5 as well, where GPUMEM_CUDA_INCLUDE names them.
if(NOT GPUMEM_CUDA_INCLUDE)
  find_program(GPUMEM_NVCC nvcc HINTS $ENV{CUDA_HOME}/bin /usr/local/cuda/bin)
  set(_hints $ENV{CUDA_HOME} /usr/local/cuda /opt/cuda /usr)
  if(GPUMEM_NVCC)
    get_filename_component(_nvcc ${GPUMEM_NVCC} REALPATH)
    get_filename_component(_nvcc ${_nvcc} DIRECTORY)
    get_filename_component(_nvcc ${_nvcc} DIRECTORY)
    list(INSERT _hints 1 ${_nvcc})
  endif()
  foreach(_prefix IN LISTS _hints)
    if(_prefix AND EXISTS ${_prefix}/include/cuda.h)
      file(STRINGS ${_prefix}/include/cuda.h _line REGEX "^#define CUDA_VERSION ")
      string(REGEX MATCH "[0-9]+" _version "${_line}")
      if(_version EQUAL 13000)
        set(_found ${_prefix}/include)
        break()
      endif()
    endif()
  endforeach()
  if(NOT _found)
    set(_pip ${CMAKE_BINARY_DIR}/cuda-headers)
    if(NOT EXISTS ${_pip}/done)
      message(STATUS "No CUDA 13.0 toolkit found: taking the headers of pip's nvidia-cuda-runtime")
      execute_process(
        COMMAND python3 -m pip install -q --no-deps --target ${_pip} "nvidia-cuda-runtime>=13.0,<13.1" "nvidia-cuda-crt>=13.0,<13.1"
                "nvidia-cuda-profiler-api>=13.0,<13.1" "nvidia-nvtx>=13.0,<13.1"
        RESULT_VARIABLE _result)
      if(_result EQUAL 0)
        file(WRITE ${_pip}/done "")
      endif()
    endif()
    file(GLOB_RECURSE _header ${_pip}/*/cuda.h)
    if(_header)
      list(GET _header 0 _header)
      get_filename_component(_found ${_header} DIRECTORY)
    endif()
  endif()
  if(NOT _found)
    message(FATAL_ERROR "The CUDA 13.0 headers were not found. Install that CUDA toolkit and set CUDA_HOME, "
      "or let pip reach the package nvidia-cuda-runtime. "
      "(-DGPUMEM_TESTS=OFF builds libgpumem.so and gpumem without them.)")
  endif()
  set(GPUMEM_CUDA_INCLUDE ${_found} CACHE PATH "folder of the cuda.h of CUDA 13.0")
endif()
message(STATUS "CUDA headers: ${GPUMEM_CUDA_INCLUDE}")
