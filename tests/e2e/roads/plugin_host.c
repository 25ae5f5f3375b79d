/*
 * plugin_host MODE PLUGIN...: loads each plugin and lets all of them work. MODE is local, global,
 * deepbind, namespace (dlmopen), or crowd: local, behind 70 copies of the first plugin, which stay
 * beside it as files for the report. Linked to no CUDA library itself.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/sendfile.h>
#include <unistd.h>

enum {
    CROWD = 70,
    PLUGINS_MAX = CROWD + 8,
};

static void *load_plugin(const char *mode, const char *plugin)
{
    if (strcmp(mode, "namespace") == 0)
        return dlmopen(LM_ID_NEWLM, plugin, RTLD_NOW);
    if (strcmp(mode, "deepbind") == 0)
        return dlopen(plugin, RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND);
    return dlopen(plugin, RTLD_NOW | (strcmp(mode, "global") == 0 ? RTLD_GLOBAL : RTLD_LOCAL));
}

/* A file of its own, or the loader would take the copy for the plugin itself. */
static bool copy_file(const char *from, const char *to)
{
    int in = open(from, O_RDONLY | O_CLOEXEC), out = open(to, O_WRONLY | O_CREAT | O_CLOEXEC, 0700);
    ssize_t written = -1;
    if (in >= 0 && out >= 0)
        while ((written = sendfile(out, in, NULL, 1 << 20)) > 0)
            ;
    close(in);
    close(out);
    return written == 0;
}

static int load_crowd(const char *plugin, void **plugins)
{
    char path[4096];
    for (int i = 0; i < CROWD; i++) {
        snprintf(path, sizeof path, "%s.%d", plugin, i);
        plugins[i] = copy_file(plugin, path) ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
        if (plugins[i] == NULL)
            return -1;
    }
    return CROWD;
}

int main(int count, char **arguments)
{
    void *plugins[PLUGINS_MAX];
    const bool crowd = count > 2 && strcmp(arguments[1], "crowd") == 0;
    int loaded = crowd ? load_crowd(arguments[2], plugins) : 0;
    for (int i = 2; loaded >= 0 && i < count && loaded < PLUGINS_MAX; i++) {
        plugins[loaded] = load_plugin(arguments[1], arguments[i]);
        loaded = plugins[loaded] != NULL ? loaded + 1 : -1;
    }
    if (loaded < 0) {
        printf("%s\n", dlerror());
        return 1;
    }
    for (int i = 0; i < loaded; i++) {
        void (*work)(const char *) = (void (*)(const char *))dlsym(plugins[i], "plugin_work");
        work("plugin");
        fflush(stdout);
    }
    return 0;
}
