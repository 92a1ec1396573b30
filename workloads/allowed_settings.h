/* Which settings of the machine Noisebook may change, to which values, and at which risk.
 *
 * This list is the only one: `noisebook-priv` is compiled with it, and nbhelpers/machine/allowed.py
 * reads this very file. Whatever is not on it is refused, whoever asks: a file of knowledge, a
 * config, or our own code.
 *
 *     ALLOWED(path, kind, range, risk)
 *
 * path   a star stands for one number (policy*, irq 24), never for a word or a slash
 * kind   NUMBER: a decimal number from the range "least most"
 *        WORD:   one of the words of the range
 *        CPUS:   a list of CPUs, like 0-2,5; the kernel takes none that the machine has not
 *        MASK:   the same as a hexadecimal mask, like ff,00000003
 * risk   LOW:    slower or less tidy while it holds
 *        HIGH:   CPUs disappear, or other programs may be kept from running
 */
ALLOWED("/proc/sys/kernel/numa_balancing", NUMBER, "0 3", LOW)
ALLOWED("/proc/sys/kernel/sched_autogroup_enabled", NUMBER, "0 1", LOW)
ALLOWED("/proc/sys/kernel/sched_rt_runtime_us", NUMBER, "-1 1000000", HIGH)
ALLOWED("/proc/sys/kernel/split_lock_mitigate", NUMBER, "0 1", LOW)
ALLOWED("/proc/sys/kernel/timer_migration", NUMBER, "0 1", LOW)
ALLOWED("/proc/sys/kernel/watchdog", NUMBER, "0 1", LOW)
ALLOWED("/proc/sys/vm/compaction_proactiveness", NUMBER, "0 100", LOW)
ALLOWED("/proc/sys/vm/dirty_writeback_centisecs", NUMBER, "100 6000", LOW)
ALLOWED("/proc/sys/vm/stat_interval", NUMBER, "1 300", LOW)
ALLOWED("/proc/sys/vm/swappiness", NUMBER, "0 200", LOW)
ALLOWED("/proc/sys/vm/zone_reclaim_mode", NUMBER, "0 7", LOW)
ALLOWED("/sys/kernel/mm/ksm/run", NUMBER, "0 1", LOW)
ALLOWED("/sys/kernel/mm/transparent_hugepage/enabled", WORD, "always madvise never", LOW)
ALLOWED("/sys/kernel/mm/transparent_hugepage/defrag", WORD,
        "always defer defer+madvise madvise never", LOW)
ALLOWED("/sys/kernel/mm/transparent_hugepage/khugepaged/defrag", NUMBER, "0 1", LOW)
ALLOWED("/sys/devices/system/cpu/smt/control", WORD, "on off", HIGH)
ALLOWED("/sys/devices/system/cpu/cpufreq/boost", NUMBER, "0 1", LOW)
ALLOWED("/sys/devices/system/cpu/cpufreq/policy*/scaling_max_freq", NUMBER, "1 20000000", LOW)
ALLOWED("/sys/devices/system/cpu/cpufreq/policy*/scaling_governor", WORD,
        "performance powersave schedutil ondemand conservative", LOW)
ALLOWED("/sys/devices/system/cpu/cpufreq/policy*/energy_performance_preference", WORD,
        "performance balance_performance balance_power power default", LOW)
ALLOWED("/sys/devices/system/cpu/intel_pstate/no_turbo", NUMBER, "0 1", LOW)
ALLOWED("/sys/devices/virtual/workqueue/cpumask", MASK, "", LOW)
ALLOWED("/proc/irq/*/smp_affinity_list", CPUS, "", LOW)
ALLOWED("/sys/kernel/debug/sched/fair_server/cpu*/runtime", NUMBER, "0 1000000000", HIGH)
/* What the kernel does at once when it is written, and what leaves nothing to put back. */
ALLOWED("/proc/sys/vm/compact_memory", NUMBER, "1 1", LOW)
ALLOWED("/proc/sys/vm/drop_caches", NUMBER, "1 3", LOW)
