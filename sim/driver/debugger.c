/*
 * What a debugger looks for in the driver (cudadebugger.h of the toolkit): the symbols are there, as
 * in NVIDIA's, and say that nothing can be debugged.
 */
#include "driver.h"

#define CUDBG_ERROR_UNINITIALIZED 5

#define REFUSING(name)                                                                             \
    GPUSIM_EXPORTED int name(void);                                                                \
    int name(void)                                                                                 \
    {                                                                                              \
        return CUDBG_ERROR_UNINITIALIZED;                                                          \
    }
#define DOING_NOTHING(name)                                                                        \
    GPUSIM_EXPORTED void name(void);                                                               \
    void name(void)                                                                                \
    {                                                                                              \
    }
#define ZERO(type, name)                                                                           \
    extern GPUSIM_EXPORTED type name;                                                              \
    type name

REFUSING(cudbgGetAPI)
REFUSING(cudbgGetAPIVersion)
REFUSING(cudbgMain)
DOING_NOTHING(cudbgApiInit)
DOING_NOTHING(cudbgApiAttach)
DOING_NOTHING(cudbgApiDetach)
DOING_NOTHING(cudbgPreInit)
DOING_NOTHING(cudbgReportAttachProcedureFinished)
DOING_NOTHING(cudbgReportDriverApiError)
DOING_NOTHING(cudbgReportDriverInternalError)

ZERO(unsigned int, cudbgApiClientPid);
ZERO(unsigned int, cudbgApiClientRevision);
ZERO(unsigned int, cudbgAttachHandlerAvailable);
ZERO(unsigned int, cudbgDebuggerCapabilities);
ZERO(unsigned int, cudbgDebuggerInitialized);
ZERO(unsigned int, cudbgDetachSuspendedDevicesMask);
ZERO(unsigned int, cudbgEnableIntegratedMemcheck);
ZERO(unsigned int, cudbgEnableLaunchBlocking);
ZERO(unsigned int, cudbgEnablePreemptionDebugging);
ZERO(unsigned int, cudbgInitiateDebuggerAttachProcedureFd);
ZERO(unsigned int, cudbgIpcFlag);
ZERO(unsigned int, cudbgReportDriverApiErrorFlags);
ZERO(unsigned int, cudbgResumeForAttachDetach);
ZERO(unsigned int, cudbgRpcEnabled);
ZERO(unsigned int, cudbgSessionId);
ZERO(unsigned int, cudbgUseExternalDebugger);
ZERO(unsigned long long, cudbgReportedDriverApiErrorCode);
ZERO(unsigned long long, cudbgReportedDriverApiErrorFuncNameAddr);
ZERO(unsigned long long, cudbgReportedDriverApiErrorFuncNameSize);
ZERO(unsigned long long, cudbgReportedDriverApiErrorNameAddr);
ZERO(unsigned long long, cudbgReportedDriverApiErrorNameSize);
ZERO(unsigned long long, cudbgReportedDriverApiErrorSource);
ZERO(unsigned long long, cudbgReportedDriverApiErrorStringAddr);
ZERO(unsigned long long, cudbgReportedDriverApiErrorStringSize);
ZERO(unsigned long long, cudbgReportedDriverInternalErrorCode);
GPUSIM_EXPORTED extern char cudbgInjectionPath[4096];
char cudbgInjectionPath[4096];
