"""Four threads, each with work of its own."""

import threading

import tensorflow as tf

totals = {}


@tf.function
def work(values):
    return tf.reduce_sum(values * 2.0)


def run(number):
    total = 0.0
    for _ in range(20):
        total += float(work(tf.random.normal((16, 16))))
    totals[number] = total


threads = [threading.Thread(target=run, args=(number,)) for number in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
