"""vLLM's scheduler waits until a request has all its tokens, and kernels count them, so that LLM.generate() would not end in
a dry run. What they would count follows from what the host knows, where no guessed token is right: a request whose prompt
has been read has one token more after each step.
"""


def count_tokens(module):
    """After vLLM's model runner (its second version: the first counts on the host) is imported."""
    runner, output = getattr(module, "GPUModelRunner", None), getattr(module, "AsyncOutput", None)
    if not hasattr(runner, "sample") or not hasattr(output, "get_output"):
        return
    sample, get_output = runner.sample, output.get_output

    def sample_and_count(self, hidden_states, input_batch, *args, **kwargs):
        sampled = sample(self, hidden_states, input_batch, *args, **kwargs)
        try:
            read = input_batch.num_computed_prefill_tokens_np + input_batch.num_scheduled_tokens
            sampled[0].counted_on_host = read >= input_batch.prefill_len_np
        except AttributeError:  # of a version that has other names
            pass
        return sampled

    def get_output_counted(self):
        self.num_sampled_tokens_np[:] = getattr(self.sampler_output, "counted_on_host", self.num_sampled_tokens_np)
        return get_output(self)

    runner.sample, output.get_output = sample_and_count, get_output_counted
