/* A small stand-in for the driver's libnvidia-ml.so.1, so that the real pynvml can be tested without a device.
 *
 *   cc -shared -fPIC -o DIR/libnvidia-ml.so.1 nvml_stub.c      then start Python with LD_LIBRARY_PATH=DIR
 *
 * Build flags, each leaving symbols out as drivers of some age do:
 *   OLD_DRIVER   no memory v2, no temperature V, no MIG, no enforced limit, throttle reasons and processes v2 by their
 *                old names
 *   NO_INIT      no nvmlInitWithFlags
 *
 * Environment, looked up anew at each call, so a test may change it between two readings:
 *   STUB_COUNT   devices, 8 unless told
 *   STUB_INIT    return code of nvmlInitWithFlags
 *   STUB_FAIL    failing calls: "GetName:15,GetPowerUsage@2:3" = code 15 for all devices, code 3 for device 2 alone,
 *                "GetName:-1" = the call never comes back
 *   STUB_FAULTS  a file with the text of STUB_FAIL, for a process that runs already; "Init:9" = no start
 *   STUB_NAME    name of all devices, "NVIDIA H100 80GB HBM3" unless told
 *   STUB_MIG     "1:5" = device 1 is in MIG mode and its slots are the set bits of 5, i.e. 0 and 2
 *   STUB_THROTTLE  "3:64,5:8" = bits of the clocks' event reasons of devices 3 and 5, none for others
 *   STUB_PROCESSES "0:1234:500,0:99:-1" = process 1234 holds 500 MiB on device 0, 99 an amount that is not told
 *   STUB_VALUES  a file with lines "device utilization% used-MiB celsius watts" that replace the defaults
 *   STUB_JOURNAL a file that gets a line "init" or "shutdown" for each such call
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAX_DEVICES 64
#define MAX_SLOTS 7
#define MIB (1ULL << 20)
#define RESERVED (600 * MIB)

enum { SUCCESS = 0, UNINITIALIZED = 1, INVALID_ARGUMENT = 2, NOT_SUPPORTED = 3, NOT_FOUND = 6, WRONG_VERSION = 25 };
enum { INSUFFICIENT_SIZE = 7 };

struct device { int index, slot; }; /* slot -1: the whole device */
struct utilization { unsigned gpu, memory; };
struct memory { unsigned long long total, free, used; };
struct memory_v2 { unsigned version; unsigned long long total, reserved, free, used; };
struct temperature { unsigned version; int sensor, celsius; };
struct process { unsigned pid; unsigned long long used; unsigned gpu_instance, compute_instance; }; /* v2 and v3 */
struct values { unsigned utilization, celsius; unsigned long long used; double watts; };

static struct device devices[MAX_DEVICES][MAX_SLOTS + 1];
static int users = 0;

static int number(const char *variable, int otherwise) {
    const char *text = getenv(variable);
    return text && *text ? atoi(text) : otherwise;
}

static void journal(const char *word) {
    const char *path = getenv("STUB_JOURNAL");
    FILE *file = path ? fopen(path, "a") : NULL;
    if (file) { fprintf(file, "%s\n", word); fclose(file); }
}

/* The text of STUB_FAIL, or of the file that STUB_FAULTS names. */
static const char *faults(void) {
    static char text[1000];
    const char *path = getenv("STUB_FAULTS");
    FILE *file = path ? fopen(path, "r") : NULL;
    if (!file) return getenv("STUB_FAIL");
    text[fread(text, 1, sizeof text - 1, file)] = 0;
    fclose(file);
    return text;
}

static int given(int code) {
    if (code < 0) for (;;) pause();
    return code;
}

/* The code that is ordered for a call on a device (-1: on none). */
static int ordered(const char *call, int device) {
    const char *entry = faults();
    size_t length = strlen(call);
    while (entry && *entry) {
        if (!strncmp(entry, call, length)) {
            const char *rest = entry + length;
            if (*rest == ':') return given(atoi(rest + 1));
            if (*rest == '@' && atoi(rest + 1) == device && strchr(rest, ':')) return given(atoi(strchr(rest, ':') + 1));
        }
        entry = strchr(entry, ',');
        if (entry) entry++;
    }
    return SUCCESS;
}

static int failure(const char *call, int device) { return users ? ordered(call, device) : UNINITIALIZED; }

static struct values values(int index) {
    struct values found = {10u * (unsigned)index, 40u + (unsigned)index, (1000ULL + (unsigned)index) * MIB, 100.5 + index};
    const char *path = getenv("STUB_VALUES");
    FILE *file = path ? fopen(path, "r") : NULL;
    struct values line;
    int device;
    if (!file) return found;
    while (fscanf(file, "%d %u %llu %u %lf", &device, &line.utilization, &line.used, &line.celsius, &line.watts) == 5)
        if (device == index) { found = line; found.used *= MIB; }
    fclose(file);
    return found;
}

#define ENTER(call) do { int code_ = failure(call, device->index); if (code_) return code_; } while (0)
#define WHOLE_DEVICES_ONLY do { if (device->slot >= 0) return NOT_SUPPORTED; } while (0)

#ifndef NO_INIT
int nvmlInitWithFlags(unsigned flags) {
    int code = number("STUB_INIT", ordered("Init", -1));
    (void)flags;
    journal("init");
    if (!code) users++;
    return code;
}
#endif

int nvmlShutdown(void) {
    journal("shutdown");
    if (!users) return UNINITIALIZED;
    users--;
    return SUCCESS;
}

const char *nvmlErrorString(int code) { return code == 77 ? "a code\033[2J of the future" : "some error"; }

int nvmlDeviceGetCount_v2(unsigned *count) {
    int code = failure("GetCount", -1);
    *count = (unsigned)number("STUB_COUNT", 8);
    return code;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, struct device **device) {
    int code = failure("GetHandleByIndex", (int)index);
    if (code) return code;
    if (index >= MAX_DEVICES || (int)index >= number("STUB_COUNT", 8)) return INVALID_ARGUMENT;
    *device = &devices[index][0];
    (*device)->index = (int)index;
    (*device)->slot = -1;
    return SUCCESS;
}

int nvmlDeviceGetName(struct device *device, char *name, unsigned size) {
    const char *told = getenv("STUB_NAME");
    ENTER("GetName");
    if (device->slot >= 0) snprintf(name, size, "NVIDIA H100 80GB HBM3 MIG 1g.10gb");
    else snprintf(name, size, "%s", told ? told : "NVIDIA H100 80GB HBM3");
    return SUCCESS;
}

int nvmlDeviceGetUUID(struct device *device, char *uuid, unsigned size) {
    ENTER("GetUUID");
    snprintf(uuid, size, "GPU-00000000-0000-0000-%04d-%012d", device->slot + 1, device->index);
    return SUCCESS;
}

int nvmlDeviceGetUtilizationRates(struct device *device, struct utilization *answer) {
    ENTER("GetUtilizationRates");
    WHOLE_DEVICES_ONLY;
    answer->gpu = values(device->index).utilization;
    answer->memory = 1;
    return SUCCESS;
}

static struct memory_v2 memory_of(const struct device *device) {
    struct memory_v2 answer = {0x02000028, 81559 * MIB, RESERVED, 0, 0};
    answer.used = values(device->index).used;
    if (device->slot >= 0) {
        answer.total = 9984 * MIB;
        answer.used = (100ULL + (unsigned)device->slot) * MIB;
    }
    answer.free = answer.total - answer.reserved - answer.used;
    return answer;
}

int nvmlDeviceGetMemoryInfo(struct device *device, struct memory *answer) {
    struct memory_v2 memory = memory_of(device);
    ENTER("GetMemoryInfo");
    answer->total = memory.total;
    answer->free = memory.free;
    answer->used = memory.used + memory.reserved;
    return SUCCESS;
}

int nvmlDeviceGetTemperature(struct device *device, int sensor, unsigned *celsius) {
    (void)sensor;
    ENTER("GetTemperature");
    WHOLE_DEVICES_ONLY;
    *celsius = values(device->index).celsius;
    return SUCCESS;
}

int nvmlDeviceGetPowerUsage(struct device *device, unsigned *milliwatts) {
    ENTER("GetPowerUsage");
    WHOLE_DEVICES_ONLY;
    *milliwatts = (unsigned)(values(device->index).watts * 1000);
    return SUCCESS;
}

static int reasons_of(const struct device *device, unsigned long long *reasons) {
    const char *entry = getenv("STUB_THROTTLE");
    int index;
    unsigned long long bits;
    *reasons = 0;
    while (entry && *entry) {
        if (sscanf(entry, "%d:%llu", &index, &bits) == 2 && index == device->index) *reasons = bits;
        entry = strchr(entry, ',');
        if (entry) entry++;
    }
    return SUCCESS;
}

/* As the driver does: says how many there are where the room is too little, else fills it. */
static int processes_of(const struct device *device, unsigned *count, struct process *answer) {
    const char *entry = getenv("STUB_PROCESSES");
    unsigned room = *count, found = 0, pid;
    long long used;
    int index;
    while (entry && *entry) {
        if (sscanf(entry, "%d:%u:%lld", &index, &pid, &used) == 3 && index == device->index) {
            if (found < room && answer) {
                struct process one = {pid, used < 0 ? ~0ULL : (unsigned long long)used * MIB, ~0u, ~0u};
                answer[found] = one;
            }
            found++;
        }
        entry = strchr(entry, ',');
        if (entry) entry++;
    }
    *count = found;
    return found > room ? INSUFFICIENT_SIZE : SUCCESS;
}

#ifdef OLD_DRIVER
int nvmlDeviceGetCurrentClocksThrottleReasons(struct device *device, unsigned long long *reasons) {
    ENTER("GetCurrentClocks");
    return reasons_of(device, reasons);
}

int nvmlDeviceGetComputeRunningProcesses_v2(struct device *device, unsigned *count, struct process *answer) {
    ENTER("GetComputeRunningProcesses");
    return processes_of(device, count, answer);
}
#else
int nvmlDeviceGetCurrentClocksEventReasons(struct device *device, unsigned long long *reasons) {
    ENTER("GetCurrentClocks");
    WHOLE_DEVICES_ONLY;
    return reasons_of(device, reasons);
}

int nvmlDeviceGetComputeRunningProcesses_v3(struct device *device, unsigned *count, struct process *answer) {
    ENTER("GetComputeRunningProcesses");
    WHOLE_DEVICES_ONLY;
    return processes_of(device, count, answer);
}

int nvmlDeviceGetMemoryInfo_v2(struct device *device, struct memory_v2 *answer) {
    ENTER("GetMemoryInfo_v2");
    ENTER("GetMemoryInfo");
    if (answer->version != 0x02000028) return WRONG_VERSION;
    *answer = memory_of(device);
    return SUCCESS;
}

int nvmlDeviceGetTemperatureV(struct device *device, struct temperature *answer) {
    ENTER("GetTemperatureV");
    ENTER("GetTemperature");
    WHOLE_DEVICES_ONLY;
    if (answer->version != 0x0100000C) return WRONG_VERSION;
    answer->celsius = (int)values(device->index).celsius;
    return SUCCESS;
}

int nvmlDeviceGetEnforcedPowerLimit(struct device *device, unsigned *milliwatts) {
    ENTER("GetEnforcedPowerLimit");
    WHOLE_DEVICES_ONLY;
    *milliwatts = 700000;
    return SUCCESS;
}

/* Bits of the occupied slots, -1 where the device is not in MIG mode. */
static int slots(int index) {
    const char *text = getenv("STUB_MIG");
    int device, bits;
    return text && sscanf(text, "%d:%d", &device, &bits) == 2 && device == index ? bits : -1;
}

int nvmlDeviceGetMigMode(struct device *device, unsigned *current, unsigned *pending) {
    ENTER("GetMigMode");
    *current = *pending = slots(device->index) >= 0;
    return SUCCESS;
}

int nvmlDeviceGetMaxMigDeviceCount(struct device *device, unsigned *count) {
    ENTER("GetMaxMigDeviceCount");
    *count = MAX_SLOTS;
    return SUCCESS;
}

int nvmlDeviceGetMigDeviceHandleByIndex(struct device *device, unsigned slot, struct device **instance) {
    ENTER("GetMigDeviceHandleByIndex");
    if (slot >= MAX_SLOTS) return INVALID_ARGUMENT;
    if (!(slots(device->index) >> slot & 1)) return NOT_FOUND;
    *instance = &devices[device->index][slot + 1];
    (*instance)->index = device->index;
    (*instance)->slot = (int)slot;
    return SUCCESS;
}
#endif
