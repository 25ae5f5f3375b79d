/*
 * How libgpumem.so gets between programs and CUDA: each test is a scene of roads/probe.c in its own
 * process under the library, which is built here with a small table (roads) at -O0 and at -O2.
 */
#include <setjmp.h>
#include <spawn.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include <cmocka.h> /* needs the headers above */

struct scene {
    const char *name;
    const char *program;
    const char *preload; /* "us" and "us_again" are the library and a copy */
};

static const char *level; /* O0 or O2 */

/* Puts the folder and the library of this level into a preload list. */
static void expand(char *out, size_t size, const char *list)
{
    char copy[512];
    size_t used = 0;
    snprintf(copy, sizeof copy, "%s", list);
    for (char *name = strtok(copy, ":"); name != NULL; name = strtok(NULL, ":")) {
        const char *separator = used > 0 ? ":" : "";
        used += (size_t)snprintf(out + used, size - used,
                                 strcmp(name, "us") == 0 || strcmp(name, "us_again") == 0
                                     ? "%s%s/lib%s_%s.so"
                                     : "%s%s/lib%s.so",
                                 separator, ROADS_FOLDER, name, level);
    }
}

static void play(void **state)
{
    const struct scene *scene = *state;
    char preload[1024] = "";
    char program[512];
    char list[1100];
    char library[512];
    expand(preload, sizeof preload, scene->preload);
    snprintf(list, sizeof list, "LD_PRELOAD=%s", preload);
    snprintf(program, sizeof program, "%s/%s", ROADS_FOLDER, scene->program);
    char *arguments[] = {program, (char *)scene->name, NULL};
    snprintf(library, sizeof library, "ROADS_LIBRARY=%s/libus_%s.so", ROADS_FOLDER, level);
    char *environment[] = {list, library, "LD_LIBRARY_PATH=" ROADS_FOLDER, NULL};
    pid_t child;
    int status;
    assert_int_equal(posix_spawn(&child, program, NULL, NULL, arguments, environment), 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
        fail_msg("%s of %s with %s: wait status %#x", scene->name, scene->program, preload,
                 (unsigned)status);
}

static const struct scene scenes[] = {
    {"handle_gives_wrapper", "probe", "us"},
    {"other_names_pass", "probe", "us"},
    {"missing_stays_null", "probe", "us"},
    {"export_does_not_show", "probe", "us"},
    {"global_scope_gives_wrapper", "probe", "us"},
    {"default_scope_of_plugin", "probe", "us"},
    {"plugins_keep_their_runtimes", "probe", "us"},
    {"second_runtime_is_not_wrapped", "probe", "us"},
    {"pointer_is_not_the_askers_own_runtime", "probe", "us"},
    {"versioned_lookup_passes", "probe", "us"},
    {"other_namespace_stays_apart", "probe", "us"},
    {"proc_address_by_version", "probe", "us"},
    {"proc_address_not_exported", "probe", "us"},
    {"proc_address_of_the_future", "probe", "us"},
    {"proc_address_of_a_lax_driver", "probe", "us"},
    {"symbol_of_the_future", "probe", "us"},
    {"proc_address_untouched", "probe", "us"},
    {"proc_address_of_itself", "probe", "us"},
    {"unloaded_is_forgotten", "probe", "us"},
    {"plugin_can_come_and_go", "probe", "us"},
    {"other_unloading_changes_nothing", "probe", "us"},
    {"errno_is_kept", "probe", "us"},
    {"nothing_is_allocated", "probe", "us"},
    {"threads_agree", "probe", "us"},
    {"linked", "probe_linked", "us"},
    {"linked_and_plugin_of_other_version", "probe_linked", "us"},
    {"plugin_first_and_linked", "probe_linked", "us"},
    {"address_taken", "probe_linked", "us"},
    {"address_taken", "probe_fixed", "us"},
    /* The wrong answer for a lost caller depends on the order. */
    {"next_keeps_its_caller", "probe", "chain_first:chain_last:us"},
    {"next_keeps_its_caller", "probe", "chain_first:us:chain_last"},
    {"next_keeps_its_caller", "probe", "us:chain_first:chain_last"},
    {"early_lookup", "probe", "us:early"},
    {"early_lookup", "probe", "early:us"},
    {"two_copies", "probe", "us:us_again"},
    {"two_copies_linked", "probe_linked", "us:us_again"},
    {"interposer_in_linked_road", "probe_linked", "us:interposer_next"},
    {"interposer_in_linked_road", "probe_linked", "interposer_next:us"},
    {"interposer_in_linked_road", "probe_linked", "us:interposer_handle"},
    {"interposer_in_linked_road", "probe_linked", "interposer_handle:us"},
    {"interposer_in_handle_road", "probe", "us:interposer_dlsym"},
    {"foreign_hook_before_us", "probe", "interposer_dlsym:us"},
    {"injected", "probe_linked", ""},
    {"injected", "probe_fixed", ""},
    {"injected_with_plugins", "probe_linked", ""},
    {"injected_beside_interposer", "probe_linked", "interposer_next"},
    {"injected", "probe_linked", "other_tool"},
    {"injected_though_preloaded", "probe_linked", "us"},
    {"injected_though_preloaded", "probe_linked", "us_again"},
};

enum { SCENES = sizeof scenes / sizeof scenes[0] };

static int play_all(const char *at)
{
    struct CMUnitTest tests[SCENES] = {0};
    static char names[SCENES][160];
    level = at;
    for (size_t i = 0; i < SCENES; i++) {
        snprintf(names[i], sizeof names[i], "%s: %s of %s under %s", at, scenes[i].name,
                 scenes[i].program, scenes[i].preload);
        tests[i].name = names[i];
        tests[i].test_func = play;
        tests[i].initial_state = (void *)&scenes[i];
    }
    return cmocka_run_group_tests_name(at, tests, NULL, NULL);
}

int main(void)
{
    return play_all("O0") + play_all("O2");
}
