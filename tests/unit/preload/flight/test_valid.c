/* The validators of the recorder's checked builds: each sees what it is there to see. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "flight/alive.h"
#include "flight/fold.h"
#include "ring/lane.h"
#include <string.h>

static void add_some(void)
{
    for (uint32_t i = 0; i < 20; i++) {
        struct gm_record record = {.type = i % 4 ? GM_EVENT_ALLOC : GM_EVENT_VMM_RESERVE,
                                   .kind = i % 4 ? GM_KIND_DEVICE : GM_KIND_NONE,
                                   .device = 0,
                                   .address = 0x10000 * (i + 1),
                                   .size = 0x1000,
                                   .time = i + 1};
        gm_fold(&record, NULL, 0);
    }
}

static uint32_t entry_of(enum gm_carry_role role)
{
    uint32_t at = gm_carry_first();
    while (gm_carry_at(at)->role != role)
        at = gm_carry_at(at)->next;
    return at;
}

static void what_is_carried_and_broken_is_seen(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 7; i++) {
        gm_fold_forget();
        add_some();
        assert_true(gm_carry_is_valid() && gm_alive_is_valid());
        struct gm_carried *life = gm_carry_at(entry_of(GM_CARRY_LIFE));
        struct gm_carried *range = gm_carry_at(entry_of(GM_CARRY_RESERVATION));
        switch (i) {
        case 0:
            life->previous = 19;
            break;
        case 1:
            life->key++;
            break;
        case 2:
            gm_carry_at(life->next)->role = GM_CARRY_FREE;
            break;
        case 3:
            range->record.size = 0x100000;
            break;
        case 4:
            life->record.size++;
            break;
        case 5:
            gm_alive_on[1].live[GM_KIND_DEVICE]--;
            break;
        default:
            life->ended = true;
            break;
        }
        if (gm_carry_is_valid() && gm_alive_is_valid())
            fail_msg("break %u of what is carried was not seen", i);
    }
    gm_fold_forget();
}

static void a_broken_ring_is_seen(void **state)
{
    static struct {
        struct gm_lane lane;
        struct gm_record records[64];
    } ring;
    struct gm_thread sound = {.lane = &ring.lane, .records = ring.records, .mask = 63};
    (void)state;
    for (unsigned i = 0; i < 5; i++) {
        struct gm_thread thread = sound;
        ring.lane = (struct gm_lane){.capacity = 64, .head = 100, .tail = 36};
        assert_true(gm_lane_is_valid(&thread));
        switch (i) {
        case 0:
            ring.lane.tail = 101;
            break;
        case 1:
            ring.lane.tail = 35;
            break;
        case 2:
            ring.lane.capacity = 63;
            break;
        case 3:
            thread.mask = 127;
            break;
        default:
            thread.records++;
            break;
        }
        if (gm_lane_is_valid(&thread))
            fail_msg("break %u of the ring was not seen", i);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_carried_and_broken_is_seen),
        cmocka_unit_test(a_broken_ring_is_seen),
    };
    if (!gm_fold_prepare())
        return 1;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
