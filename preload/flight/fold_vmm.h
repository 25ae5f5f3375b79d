/* Virtual memory and multicast, as they are folded. Needs gm_pack_lock. */
#ifndef GPUMEM_PRELOAD_FLIGHT_FOLD_VMM_H
#define GPUMEM_PRELOAD_FLIGHT_FOLD_VMM_H

#include "flight/carry.h"

void gm_fold_vmm_apply(const struct gm_record *record, const struct gm_record *detail,
                       uint32_t lane, uint32_t ending);
void gm_fold_vmm_array_ended(uint64_t array, uint32_t ending);
void gm_fold_vmm_released(const struct gm_carried *ending, bool undone, uint32_t status);
void gm_fold_vmm_over(uint32_t number); /* the end of a mapping or binding cannot be undone */
bool gm_fold_vmm_revive(uint32_t number, uint32_t status); /* it is; false: what is there since
                                                              shows that it did happen */
bool gm_fold_vmm_prepare(uint32_t number, struct gm_record *record); /* to be given out; whether
                                                                        with another handle */
void gm_fold_vmm_forget(void);

#endif
