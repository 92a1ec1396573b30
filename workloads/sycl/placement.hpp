/* placement.hpp: where the threads of this process may run: read, opened to all, and written down.
 *
 * Left alone, Intel's CPU runtime pins its workers to one CPU each in most runs and leaves the
 * first thread free: neither roaming nor pinned, and not the same in each run. So where nobody
 * asked for pinning (DPCPP_CPU_CU_AFFINITY), each thread is set free after the warm-up. Asked to
 * pin, it does so only where the process may use the whole machine; else NOISEBOOK_PLACES names
 * each thread's CPUs.
 */
#ifndef NOISEBOOK_SYCL_PLACEMENT_HPP
#define NOISEBOOK_SYCL_PLACEMENT_HPP

#include <algorithm>
#include <map>
#include <stdexcept>
#include <string>
#include <sys/syscall.h>
#include <vector>

#include "../noisebook.h"

namespace nb
{

/* CPU numbers, ascending. */
using cpu_set = std::vector<int>;

enum { MOST_CPUS = 8192, BITS = 8 * sizeof(unsigned long) };

/* The CPUs that a thread may use; 0: the calling one. */
inline cpu_set allowed_cpus(pid_t thread = 0)
{
    unsigned long words[MOST_CPUS / BITS] = {0};
    cpu_set cpus;
    syscall(SYS_sched_getaffinity, thread, sizeof words, words);
    for (int cpu = 0; cpu < MOST_CPUS; cpu++)
        if (words[cpu / BITS] >> cpu % BITS & 1)
            cpus.push_back(cpu);
    return cpus;
}

inline void allow_cpus(pid_t thread, const cpu_set &cpus)
{
    unsigned long words[MOST_CPUS / BITS] = {0};
    for (int cpu : cpus)
        words[cpu / BITS] |= 1ul << cpu % BITS;
    if (syscall(SYS_sched_setaffinity, thread, sizeof words, words))
        fprintf(stderr, "noisebook: thread %d cannot be moved: %s\n", (int)thread, strerror(errno));
}

/* The threads of this process, the oldest first. */
inline std::vector<pid_t> own_threads()
{
    std::vector<pid_t> threads;
    DIR *tasks = opendir("/proc/self/task");
    for (struct dirent *entry; tasks && (entry = readdir(tasks));)
        if (entry->d_name[0] != '.')
            threads.push_back((pid_t)atoi(entry->d_name));
    if (tasks)
        closedir(tasks);
    std::sort(threads.begin(), threads.end());
    return threads;
}

/* As the kernel writes it: 0-3,8 */
inline std::string list_of(const cpu_set &cpus)
{
    std::string list;
    for (size_t i = 0, j; i < cpus.size(); i = j) {
        for (j = i + 1; j < cpus.size() && cpus[j] == cpus[j - 1] + 1;)
            j++;
        list += (i ? "," : "") + std::to_string(cpus[i]) +
                (j > i + 1 ? "-" + std::to_string(cpus[j - 1]) : "");
    }
    return list;
}

/* The CPUs of all threads, for the program's last line: 0-3*4 (four threads, each on any of them),
 * 0+1+2+3 (a thread each). */
inline std::string affinity_of_threads()
{
    std::map<cpu_set, int> counts;
    std::string text;
    for (pid_t thread : own_threads())
        counts[allowed_cpus(thread)]++;
    for (const auto &[cpus, count] : counts)
        text += (text.empty() ? "" : "+") + list_of(cpus) +
                (count > 1 ? "*" + std::to_string(count) : "");
    return text;
}

/* The first of these variables that is set and not empty, or nullptr; the runtime knows the older
 * names too. */
inline const char *variable(const char *name, const char *older)
{
    const char *value = getenv(name);
    value = value && *value ? value : getenv(older);
    return value && *value ? value : nullptr;
}

/* How many threads the user wants to work; 0: not said. */
inline int wanted_threads()
{
    const char *value = variable("DPCPP_CPU_NUM_CUS", "SYCL_CPU_NUM_CUS");
    return value ? atoi(value) : 0;
}

/* The variable NOISEBOOK_PLACES: CPU numbers separated by commas, places by colons: 0,8:1,9 are two
 * places of two CPUs. */
inline std::vector<cpu_set> places_of(const char *text)
{
    std::vector<cpu_set> places(1);
    for (char *end = nullptr; *text; text = *end ? end + 1 : "") {
        long cpu = strtol(text, &end, 10);
        if (end == text || !strchr(",:", *end) || cpu < 0 || cpu >= MOST_CPUS)
            throw std::runtime_error(std::string("NOISEBOOK_PLACES: no CPU number at '") + text +
                                     "'");
        places.back().push_back((int)cpu);
        if (*end == ':')
            places.emplace_back();
    }
    return places;
}

/* Thread i to place i of NOISEBOOK_PLACES; "all", or not set: each to all CPUs, except that where
 * not set the runtime's own pinning is respected. */
inline void place_threads(const cpu_set &allowed)
{
    const char *text = getenv("NOISEBOOK_PLACES");
    size_t at = 0;
    if ((!text || !*text) && variable("DPCPP_CPU_CU_AFFINITY", "SYCL_CPU_CU_AFFINITY"))
        return;
    std::vector<cpu_set> places = text && *text && strcmp(text, "all")
                                      ? places_of(text)
                                      : std::vector<cpu_set>{allowed};
    for (pid_t thread : own_threads())
        allow_cpus(thread, places[at++ % places.size()]);
}

} // namespace nb

#endif
