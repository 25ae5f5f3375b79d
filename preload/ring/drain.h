/*
 * The drainer: one thread that packs rings when they are half full. It is started when the first
 * ring gets there, so that small programs never see a thread they did not make. It holds no lock of
 * the host and is not needed for correctness: a thread whose ring is full packs it itself, and one
 * that has no CPU to spare for the drainer does not wait until then.
 */
#ifndef GPUMEM_PRELOAD_RING_DRAIN_H
#define GPUMEM_PRELOAD_RING_DRAIN_H

#include <stdbool.h>

/* Tells the drainer that there is work; starts it the first time. False while there is no drainer: not
 * yet, or because no thread could be had. */
bool gm_drain_wake(void);

/* In a child: the drainer is not there. */
void gm_drain_forget(void);

#endif
