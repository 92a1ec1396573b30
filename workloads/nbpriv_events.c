/* noisebook-priv's events: which may be recorded, and which counted, and by what number.
 *
 *     event SYSTEM/NAME       the number of a tracepoint
 *
 * What is recorded shows everybody's threads (SECURITY.md says what of them), so that nothing is on
 * the list that Noisebook does not read. What is counted is counted on the user's threads alone: a
 * counter takes a filter from whoever holds it, which must not tell of others.
 */
#include "nbpriv.h"

#include <stdio.h>
#include <stdlib.h>

static const char RECORDED[] =
    "irq:irq_handler_entry irq:irq_handler_exit irq:softirq_entry irq:softirq_exit "
    "nmi:nmi_handler sched:sched_switch sched:sched_waking sched:sched_wakeup "
    "sched:sched_process_fork sched:sched_stat_runtime osnoise:*";

/* Those of data/knowledge/metrics; the last by which the doctor sees that there are events. */
static const char COUNTED[] =
    "irq/irq_handler_entry irq/softirq_entry irq_vectors/local_timer_entry "
    "irq_vectors/reschedule_entry irq_vectors/call_function_single_entry "
    "irq_vectors/call_function_entry nmi/nmi_handler tlb/tlb_flush kmem/mm_page_alloc "
    "block/block_rq_issue raw_syscalls/sys_enter syscalls/sys_enter_futex "
    "syscalls/sys_enter_sched_yield syscalls/sys_enter_mmap syscalls/sys_enter_munmap "
    "syscalls/sys_enter_brk syscalls/sys_enter_madvise syscalls/sys_enter_clock_nanosleep "
    "sched/sched_switch";

/* Entry and exit of an interrupt's vector; which there are, the processor says. */
static bool is_vector(const char *event)
{
    static const char SYSTEM[] = "irq_vectors:";
    const char *end = strrchr(event, '_');
    return end && !strncmp(event, SYSTEM, strlen(SYSTEM)) &&
           has_only(event + strlen(SYSTEM), "abcdefghijklmnopqrstuvwxyz0123456789_", 64) &&
           is_among_words(end, "_entry _exit");
}

/* Events like irq:irq_handler_entry,sched:sched_switch. */
bool is_event_list(const char *value)
{
    char text[TEXT_BYTES], *rest = text;
    snprintf(text, sizeof text, "%s", value);
    for (char *event; (event = strsep(&rest, ","));)
        if (!is_among_words(event, RECORDED) && !is_vector(event))
            return false;
    return true;
}

/* The same until the next boot: the events are the kernel's own. */
static int number_of(int tracefs, const char *event)
{
    char path[160], text[32];
    snprintf(path, sizeof path, "events/%s/id", event);
    return read_text(tracefs, path, text, sizeof text) ? -ENOENT : atoi(text);
}

bool is_counted(int64_t number)
{
    char all[sizeof COUNTED], *rest = strcpy(all, COUNTED);
    const int tracefs = number > 0 ? enter_tracefs() : -1;
    bool found = false;
    for (char *event; tracefs >= 0 && !found && (event = strsep(&rest, " "));)
        found = number_of(tracefs, event) == number;
    without_rights();
    return found;
}

int verb_event(struct request *request)
{
    const char *event = request->words[1];
    if (!is_among_words(event, COUNTED))
        return refused(request, -EACCES, "it is not on the list of tracepoints");
    const int tracefs = enter_tracefs();
    const int number = tracefs < 0 ? tracefs : number_of(tracefs, event);
    if (number < 0)
        return number;
    snprintf(request->said, sizeof request->said, "%d", number);
    return 0;
}
