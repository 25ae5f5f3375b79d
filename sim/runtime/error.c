/*
 * Error codes: the last error of each thread, names and texts.
 *
 * The runtime's codes are numerically those of the driver wherever the driver can return them, so a
 * driver result becomes a runtime error by a cast. The runtime keeps a failure until the program
 * fetches it; an error that destroys the context (sticky) stays.
 */
#include "runtime.h"

static _Thread_local cudaError_t last_error;

/* The compiler warns when a header declares a code that this list lacks. */
#define ERROR_CODES(X)                                                                             \
    X(cudaSuccess, "no error")                                                                     \
    X(cudaErrorInvalidValue, "invalid argument")                                                   \
    X(cudaErrorMemoryAllocation, "out of memory")                                                  \
    X(cudaErrorInitializationError, "initialization error")                                        \
    X(cudaErrorCudartUnloading, "driver shutting down")                                            \
    X(cudaErrorProfilerDisabled, "profiler disabled while using external profiling tool")          \
    X(cudaErrorProfilerNotInitialized, "profiler not initialized: call cudaProfilerInitialize()")  \
    X(cudaErrorProfilerAlreadyStarted, "profiler already started")                                 \
    X(cudaErrorProfilerAlreadyStopped, "profiler already stopped")                                 \
    X(cudaErrorInvalidConfiguration, "invalid configuration argument")                             \
    X(cudaErrorInvalidPitchValue, "invalid pitch argument")                                        \
    X(cudaErrorInvalidSymbol, "invalid device symbol")                                             \
    X(cudaErrorInvalidHostPointer, "invalid host pointer")                                         \
    X(cudaErrorInvalidDevicePointer, "invalid device pointer")                                     \
    X(cudaErrorInvalidTexture, "invalid texture reference")                                        \
    X(cudaErrorInvalidTextureBinding, "texture is not bound to a pointer")                         \
    X(cudaErrorInvalidChannelDescriptor, "invalid channel descriptor")                             \
    X(cudaErrorInvalidMemcpyDirection, "invalid copy direction for memcpy")                        \
    X(cudaErrorAddressOfConstant, "__constant__ variable address can not be taken")                \
    X(cudaErrorTextureFetchFailed, "texture fetch failed")                                         \
    X(cudaErrorTextureNotBound, "texture is not bound")                                            \
    X(cudaErrorSynchronizationError, "synchronization operation failed")                           \
    X(cudaErrorInvalidFilterSetting, "linear filtering not supported for non-float type")          \
    X(cudaErrorInvalidNormSetting, "read as normalized float not supported for 32-bit non float")  \
    X(cudaErrorMixedDeviceExecution, "device emulation mode and device execution mixed")           \
    X(cudaErrorNotYetImplemented, "feature not yet implemented")                                   \
    X(cudaErrorMemoryValueTooLarge, "memory size or pointer value too large to fit in 32 bit")     \
    X(cudaErrorStubLibrary, "CUDA driver is a stub library")                                       \
    X(cudaErrorInsufficientDriver, "CUDA driver version is insufficient for CUDA runtime version") \
    X(cudaErrorCallRequiresNewerDriver, "API call is not supported in the installed CUDA driver")  \
    X(cudaErrorInvalidSurface, "invalid surface reference")                                        \
    X(cudaErrorDuplicateVariableName, "duplicate global variable looked up by string name")        \
    X(cudaErrorDuplicateTextureName, "duplicate texture looked up by string name")                 \
    X(cudaErrorDuplicateSurfaceName, "duplicate surface looked up by string name")                 \
    X(cudaErrorDevicesUnavailable, "CUDA-capable device(s) is/are busy or unavailable")            \
    X(cudaErrorIncompatibleDriverContext, "incompatible driver context")                           \
    X(cudaErrorMissingConfiguration, "missing configuration argument")                             \
    X(cudaErrorPriorLaunchFailure, "prior launch failure")                                         \
    X(cudaErrorLaunchMaxDepthExceeded, "launch would exceed maximum depth of nested launches")     \
    X(cudaErrorLaunchFileScopedTex, "launch failed because kernel uses file-scoped textures")      \
    X(cudaErrorLaunchFileScopedSurf, "launch failed because kernel uses file-scoped surfaces")     \
    X(cudaErrorSyncDepthExceeded, "cudaDeviceSynchronize called deeper than the depth limit")      \
    X(cudaErrorLaunchPendingCountExceeded, "launch would exceed the pending launch limit")         \
    X(cudaErrorInvalidDeviceFunction, "invalid device function")                                   \
    X(cudaErrorNoDevice, "no CUDA-capable device is detected")                                     \
    X(cudaErrorInvalidDevice, "invalid device ordinal")                                            \
    X(cudaErrorDeviceNotLicensed, "device doesn't have valid Grid license")                        \
    X(cudaErrorSoftwareValidityNotEstablished, "integrity checks failed")                          \
    X(cudaErrorStartupFailure, "startup failure in cuda runtime")                                  \
    X(cudaErrorInvalidKernelImage, "device kernel image is invalid")                               \
    X(cudaErrorDeviceUninitialized, "invalid device context")                                      \
    X(cudaErrorMapBufferObjectFailed, "mapping of buffer object failed")                           \
    X(cudaErrorUnmapBufferObjectFailed, "unmapping of buffer object failed")                       \
    X(cudaErrorArrayIsMapped, "array is mapped")                                                   \
    X(cudaErrorAlreadyMapped, "resource already mapped")                                           \
    X(cudaErrorNoKernelImageForDevice, "no kernel image is available for execution on the device") \
    X(cudaErrorAlreadyAcquired, "resource already acquired")                                       \
    X(cudaErrorNotMapped, "resource not mapped")                                                   \
    X(cudaErrorNotMappedAsArray, "resource not mapped as array")                                   \
    X(cudaErrorNotMappedAsPointer, "resource not mapped as pointer")                               \
    X(cudaErrorECCUncorrectable, "uncorrectable ECC error encountered")                            \
    X(cudaErrorUnsupportedLimit, "limit is not supported on this architecture")                    \
    X(cudaErrorDeviceAlreadyInUse, "exclusive-thread device already in use by a different thread") \
    X(cudaErrorPeerAccessUnsupported, "peer access is not supported between these two devices")    \
    X(cudaErrorInvalidPtx, "a PTX JIT compilation failed")                                         \
    X(cudaErrorInvalidGraphicsContext, "invalid OpenGL or DirectX context")                        \
    X(cudaErrorNvlinkUncorrectable, "uncorrectable NVLink error detected during the execution")    \
    X(cudaErrorJitCompilerNotFound, "PTX JIT compiler library not found")                          \
    X(cudaErrorUnsupportedPtxVersion, "the PTX was compiled with an unsupported toolchain")        \
    X(cudaErrorJitCompilationDisabled, "PTX JIT compilation was disabled")                         \
    X(cudaErrorUnsupportedExecAffinity, "the provided execution affinity is not supported")        \
    X(cudaErrorUnsupportedDevSideSync, "the PTX contains unsupported device-side synchronization") \
    X(cudaErrorContained, "the error was contained")                                               \
    X(cudaErrorInvalidSource, "device kernel image is invalid")                                    \
    X(cudaErrorFileNotFound, "file not found")                                                     \
    X(cudaErrorSharedObjectSymbolNotFound, "shared object symbol not found")                       \
    X(cudaErrorSharedObjectInitFailed, "shared object initialization failed")                      \
    X(cudaErrorOperatingSystem, "OS call failed or operation not supported on this OS")            \
    X(cudaErrorInvalidResourceHandle, "invalid resource handle")                                   \
    X(cudaErrorIllegalState, "the operation cannot be performed in the present state")             \
    X(cudaErrorLossyQuery, "attempted introspection would be semantically lossy")                  \
    X(cudaErrorSymbolNotFound, "named symbol not found")                                           \
    X(cudaErrorNotReady, "device not ready")                                                       \
    X(cudaErrorIllegalAddress, "an illegal memory access was encountered")                         \
    X(cudaErrorLaunchOutOfResources, "too many resources requested for launch")                    \
    X(cudaErrorLaunchTimeout, "the launch timed out and was terminated")                           \
    X(cudaErrorLaunchIncompatibleTexturing, "launch uses incompatible texturing mode")             \
    X(cudaErrorPeerAccessAlreadyEnabled, "peer access is already enabled")                         \
    X(cudaErrorPeerAccessNotEnabled, "peer access has not been enabled")                           \
    X(cudaErrorSetOnActiveProcess, "cannot set while device is active in this process")            \
    X(cudaErrorContextIsDestroyed, "context is destroyed")                                         \
    X(cudaErrorAssert, "device-side assert triggered")                                             \
    X(cudaErrorTooManyPeers, "peer mapping resources exhausted")                                   \
    X(cudaErrorHostMemoryAlreadyRegistered,                                                        \
      "part or all of the requested memory range is already "                                      \
      "mapped")                                                                                    \
    X(cudaErrorHostMemoryNotRegistered,                                                            \
      "pointer does not correspond to a registered memory region")                                 \
    X(cudaErrorHardwareStackError, "hardware stack error")                                         \
    X(cudaErrorIllegalInstruction, "an illegal instruction was encountered")                       \
    X(cudaErrorMisalignedAddress, "misaligned address")                                            \
    X(cudaErrorInvalidAddressSpace, "operation not supported on global/shared address space")      \
    X(cudaErrorInvalidPc, "invalid program counter")                                               \
    X(cudaErrorLaunchFailure, "unspecified launch failure")                                        \
    X(cudaErrorCooperativeLaunchTooLarge, "too many blocks in cooperative launch")                 \
    X(cudaErrorTensorMemoryLeak, "tensor memory not completely freed")                             \
    X(cudaErrorNotPermitted, "operation not permitted")                                            \
    X(cudaErrorNotSupported, "operation not supported")                                            \
    X(cudaErrorSystemNotReady, "system not yet initialized")                                       \
    X(cudaErrorSystemDriverMismatch, "system has unsupported display driver / cuda driver "        \
                                     "combination")                                                \
    X(cudaErrorCompatNotSupportedOnDevice, "forward compatibility was attempted on non supported " \
                                           "HW")                                                   \
    X(cudaErrorMpsConnectionFailed, "MPS client failed to connect to the MPS control daemon")      \
    X(cudaErrorMpsRpcFailure,                                                                      \
      "the remote procedural call between the MPS server and client failed")                       \
    X(cudaErrorMpsServerNotReady, "MPS server is not ready to accept new MPS client requests")     \
    X(cudaErrorMpsMaxClientsReached, "the resources to create a new MPS client are exhausted")     \
    X(cudaErrorMpsMaxConnectionsReached, "the resources for device connections are exhausted")     \
    X(cudaErrorMpsClientTerminated, "the MPS client has been terminated by the server")            \
    X(cudaErrorCdpNotSupported, "CUDA Dynamic Parallelism is not supported")                       \
    X(cudaErrorCdpVersionMismatch, "unsupported interaction between versions of CUDA Dynamic "     \
                                   "Parallelism")                                                  \
    X(cudaErrorStreamCaptureUnsupported, "operation not permitted when stream is capturing")       \
    X(cudaErrorStreamCaptureInvalidated,                                                           \
      "operation failed due to a previous error during capture")                                   \
    X(cudaErrorStreamCaptureMerge, "operation would result in a merge of separate capture "        \
                                   "sequences")                                                    \
    X(cudaErrorStreamCaptureUnmatched, "capture was not ended in the same stream as it began")     \
    X(cudaErrorStreamCaptureUnjoined, "capturing stream has unjoined work")                        \
    X(cudaErrorStreamCaptureIsolation, "dependency created on uncaptured work in another stream")  \
    X(cudaErrorStreamCaptureImplicit, "operation would make the legacy stream depend on a "        \
                                      "capturing blocking stream")                                 \
    X(cudaErrorCapturedEvent, "operation not permitted on an event last recorded in a capturing "  \
                              "stream")                                                            \
    X(cudaErrorStreamCaptureWrongThread, "attempt to terminate a thread-local capture sequence "   \
                                         "from another thread")                                    \
    X(cudaErrorTimeout, "wait operation timed out")                                                \
    X(cudaErrorGraphExecUpdateFailure, "the graph update was not performed because it included "   \
                                       "changes which violated constraints specific to "           \
                                       "instantiated graph update")                                \
    X(cudaErrorExternalDevice, "an async error has occurred in external entity outside of CUDA")   \
    X(cudaErrorInvalidClusterSize, "a kernel launch error has occurred due to cluster "            \
                                   "misconfiguration")                                             \
    X(cudaErrorFunctionNotLoaded, "function is not loaded")                                        \
    X(cudaErrorInvalidResourceType, "resource type is invalid")                                    \
    X(cudaErrorInvalidResourceConfiguration, "resource configuration is invalid")                  \
    X(cudaErrorUnknown, "unknown error")                                                           \
    X(cudaErrorApiFailureBase, "api failure base")

/* Codes that are newer than the oldest headers we are built with. */
#if CUDART_VERSION >= 13010
#define SINCE_13010(X) X(cudaErrorStreamDetached, "stream is detached")
#else
#define SINCE_13010(X)
#endif
#if CUDART_VERSION >= 13020
#define SINCE_13020(X) X(cudaErrorVersionTranslation, "version translation failed")
#else
#define SINCE_13020(X)
#endif
#if CUDART_VERSION >= 13030
#define SINCE_13030(X) X(cudaErrorGraphRecaptureFailure, "the graph could not be captured again")
#else
#define SINCE_13030(X)
#endif
#if CUDART_VERSION >= 13040
#define SINCE_13040(X)                                                                             \
    X(cudaErrorInsufficientLoaderVersion, "the loader is too old")                                 \
    X(cudaErrorFabricNotReady, "the fabric is not ready")
#else
#define SINCE_13040(X)
#endif
#define ALL_ERROR_CODES(X)                                                                         \
    ERROR_CODES(X) SINCE_13010(X) SINCE_13020(X) SINCE_13030(X) SINCE_13040(X)

static bool is_sticky(cudaError_t error)
{
    return error == cudaErrorIllegalAddress || error == cudaErrorLaunchTimeout ||
           error == cudaErrorECCUncorrectable || error == cudaErrorNvlinkUncorrectable ||
           error == cudaErrorAssert ||
           (error >= cudaErrorHardwareStackError && error <= cudaErrorLaunchFailure);
}

cudaError_t gpusim_fail(cudaError_t error)
{
    if (error != cudaSuccess)
        last_error = error;
    return error;
}

cudaError_t gpusim_finish(CUresult result)
{
    return gpusim_fail((cudaError_t)result);
}

int gpusim_not_supported(void)
{
    return (int)gpusim_fail(cudaErrorNotSupported);
}

cudaError_t cudaGetLastError(void)
{
    cudaError_t error = last_error;
    if (!is_sticky(error))
        last_error = cudaSuccess;
    return error;
}

cudaError_t cudaPeekAtLastError(void)
{
    return last_error;
}

const char *cudaGetErrorName(cudaError_t error)
{
#define NAME(code, text)                                                                           \
    case code:                                                                                     \
        return #code;
    switch (error) {
        ALL_ERROR_CODES(NAME)
    }
#undef NAME
    return "unrecognized error code";
}

const char *cudaGetErrorString(cudaError_t error)
{
#define TEXT(code, text)                                                                           \
    case code:                                                                                     \
        return text;
    switch (error) {
        ALL_ERROR_CODES(TEXT)
    }
#undef TEXT
    return "unrecognized error code";
}
