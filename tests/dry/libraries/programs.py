#!/usr/bin/env python3
"""Small programs of popular libraries, as their users write them: programs.py NAME

Weights are random, data and tokenizers are made here: nothing is fetched. Each tells test_libraries.py, by the file
LIBRARIES_TOLD, what it holds at least, in bytes that follow from its sizes, and what it came to.
"""
import functools
import os
import sys
import tempfile

os.environ.update(HF_HUB_OFFLINE="1", HF_DATASETS_OFFLINE="1", TOKENIZERS_PARALLELISM="false", WANDB_MODE="disabled",
                  YOLO_OFFLINE="true", ACCELERATE_DISABLE_RICH="1", KERAS_BACKEND="torch")
FP32, ADAM = 4, 16  # bytes a parameter: its weight; with gradient and two states


def tell(what, text):
    with open(os.environ.get("LIBRARIES_TOLD", os.devnull), "a", encoding="utf-8") as file:
        file.write(f"{what} {text}\n")


def holds(count):
    tell("holds", int(count))


def parameters(model, is_trained=None):
    return sum(one.numel() for one in model.parameters() if is_trained is None or one.requires_grad == is_trained)


def trained_with_adam(model):
    """Bytes of weights, and of gradients and Adam's state of those that are trained."""
    holds(sum(one.numel() * one.element_size() * (4 if one.requires_grad else 1) for one in model.parameters()))
    return model


# ---- what the programs share ------------------------------------------------------------------------------------

WORDS = 4096


@functools.cache
def tokenizer():
    import tokenizers
    import transformers
    words = {word: number for number, word in enumerate(["<pad>", "<end>", "<unknown>", *(f"w{i}" for i in range(WORDS - 3))])}
    model = tokenizers.Tokenizer(tokenizers.models.WordLevel(words, unk_token="<unknown>"))
    model.pre_tokenizer = tokenizers.pre_tokenizers.WhitespaceSplit()
    made = transformers.PreTrainedTokenizerFast(tokenizer_object=model, pad_token="<pad>", eos_token="<end>",
                                                unk_token="<unknown>", padding_side="left")
    made.chat_template = "{% for m in messages %}{{ m['content'] }} {% endfor %}"
    return made


def sentence(count, first=0):
    return " ".join(f"w{(first * 17 + i) % 3000}" for i in range(count))


def gpt2():
    import transformers
    return transformers.GPT2LMHeadModel(transformers.GPT2Config(n_layer=4, n_embd=512, n_head=8, vocab_size=WORDS,
                                                                bos_token_id=1, eos_token_id=1, pad_token_id=0))


def llama(layers=4, width=512):
    import transformers
    return transformers.LlamaForCausalLM(transformers.LlamaConfig(
        hidden_size=width, intermediate_size=2 * width, num_hidden_layers=layers, num_attention_heads=8,
        num_key_value_heads=4, vocab_size=WORDS, bos_token_id=1, eos_token_id=1, pad_token_id=0))


def tokens(count, length):
    import torch
    return [{"input_ids": row, "labels": row} for row in torch.randint(3, WORDS, (count, length))]


def common(folder, **options):
    return dict(dict(output_dir=folder, per_device_train_batch_size=4, max_steps=4, report_to=[], save_strategy="no",
                     logging_steps=2, disable_tqdm=True), **options)


# ---- Hugging Face ---------------------------------------------------------------------------------------------

def train_with_transformers(model, **options):
    import transformers
    with tempfile.TemporaryDirectory() as folder:
        transformers.Trainer(trained_with_adam(model), transformers.TrainingArguments(**common(folder, **options)),
                             train_dataset=tokens(32, 128)).train()


def trainer_gpt2():
    train_with_transformers(gpt2())


def trainer_llama():
    train_with_transformers(llama(), bf16=True, gradient_checkpointing=True, gradient_accumulation_steps=2)


def generate(**options):
    import torch
    model = llama().cuda().eval()
    holds(parameters(model) * FP32)
    out = model.generate(torch.randint(3, WORDS, (2, 16)).cuda(), attention_mask=torch.ones(2, 16).cuda(), max_new_tokens=32,
                         **options)
    tell("came to", tuple(out.shape))


def generate_greedy():
    generate(do_sample=False)


def generate_sampling():
    generate(do_sample=True, top_k=50, top_p=0.9, temperature=0.8)


def generate_beams():
    generate(do_sample=False, num_beams=3)


def whisper():
    import torch
    import transformers
    config = transformers.WhisperConfig(d_model=256, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4,
                                        decoder_attention_heads=4, encoder_ffn_dim=1024, decoder_ffn_dim=1024)
    model = transformers.WhisperForConditionalGeneration(config).cuda().eval()
    holds(parameters(model) * FP32)
    sound = torch.randn(2, config.num_mel_bins, 2 * config.max_source_positions)
    tell("came to", tuple(model.generate(sound.cuda(), max_new_tokens=40).shape))


def lora(model):
    import peft
    return peft.get_peft_model(model, peft.LoraConfig(r=8, task_type="CAUSAL_LM", target_modules=["q_proj", "v_proj"]))


def peft_lora():
    train_with_transformers(lora(llama()))


def trl_sft():
    import datasets
    import trl
    data = datasets.Dataset.from_dict({"prompt": [sentence(20, i) for i in range(32)],
                                       "completion": [sentence(40, i + 5) for i in range(32)]})
    with tempfile.TemporaryDirectory() as folder:
        trl.SFTTrainer(trained_with_adam(llama()), args=trl.SFTConfig(**common(folder)), train_dataset=data,
                       processing_class=tokenizer()).train()


def trl_dpo():
    import datasets
    import trl
    data = datasets.Dataset.from_dict({"prompt": [sentence(20, i) for i in range(32)],
                                       "chosen": [sentence(40, i + 5) for i in range(32)],
                                       "rejected": [sentence(30, i + 9) for i in range(32)]})
    with tempfile.TemporaryDirectory() as folder:
        model, reference = trained_with_adam(llama()), llama()
        trl.DPOTrainer(model, reference, args=trl.DPOConfig(**common(folder)), train_dataset=data,
                       processing_class=tokenizer()).train()


def trl_grpo():
    import datasets
    import trl
    data = datasets.Dataset.from_dict({"prompt": [sentence(12, i) for i in range(32)]})

    def reward(completions, **_kwargs):
        return [float(len(one)) for one in completions]

    with tempfile.TemporaryDirectory() as folder:
        trl.GRPOTrainer(trained_with_adam(llama(2)), reward_funcs=reward, train_dataset=data, processing_class=tokenizer(),
                        args=trl.GRPOConfig(**common(folder, max_steps=2, num_generations=4, max_completion_length=24))).train()


def accelerate_loop():
    import accelerate
    import torch
    accelerator = accelerate.Accelerator(mixed_precision="bf16", gradient_accumulation_steps=2)
    model = trained_with_adam(gpt2())
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    loader = torch.utils.data.DataLoader(tokens(32, 128), batch_size=4)
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    for batch in loader:
        with accelerator.accumulate(model):
            loss = model(**batch).loss
            accelerator.backward(loss)
            accelerator.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()
        print(accelerator.gather(loss.detach()).mean().item())


def sentence_transformers():
    import datasets
    import sentence_transformers as st
    import transformers
    with tempfile.TemporaryDirectory() as folder:
        config = transformers.BertConfig(vocab_size=WORDS, hidden_size=256, num_hidden_layers=4, num_attention_heads=4,
                                         intermediate_size=1024)
        transformers.BertModel(config).save_pretrained(folder)
        tokenizer().save_pretrained(folder)
        parts = st.sentence_transformer.modules
        model = st.SentenceTransformer(modules=[parts.Transformer(folder), parts.Pooling(256)])
        trained_with_adam(model)
        data = datasets.Dataset.from_dict({"anchor": [sentence(20, i) for i in range(64)],
                                           "positive": [sentence(24, i + 3) for i in range(64)]})
        arguments = st.SentenceTransformerTrainingArguments(**common(folder, per_device_train_batch_size=16))
        st.SentenceTransformerTrainer(model, args=arguments, train_dataset=data,
                                      loss=st.sentence_transformer.losses.MultipleNegativesRankingLoss(model)).train()
        print(model.encode([sentence(9, i) for i in range(8)]).shape)


def diffusers_unet():
    import diffusers
    import torch
    import torch.nn.functional as F
    model = diffusers.UNet2DModel(sample_size=32, block_out_channels=(64, 128), layers_per_block=1,
                                  down_block_types=("DownBlock2D", "AttnDownBlock2D"),
                                  up_block_types=("AttnUpBlock2D", "UpBlock2D")).cuda()
    noise_of, optimizer = diffusers.DDPMScheduler(), torch.optim.AdamW(trained_with_adam(model).parameters())
    for _ in range(4):
        images = torch.randn(8, 3, 32, 32).cuda()
        noise, times = torch.randn_like(images), torch.randint(0, 1000, (8,), device="cuda")
        loss = F.mse_loss(model(noise_of.add_noise(images, noise, times), times).sample, noise)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        print(loss.item())


def bitsandbytes_adam():
    import bitsandbytes
    import torch
    model = gpt2().cuda()
    holds(parameters(model) * (4 + 4 + 2))
    optimizer = bitsandbytes.optim.AdamW8bit(model.parameters())
    for _ in range(4):
        batch = torch.randint(3, WORDS, (4, 128), device="cuda")
        model(input_ids=batch, labels=batch).loss.backward()
        optimizer.step()
        optimizer.zero_grad()


def qlora():
    import peft
    import torch
    import transformers
    with tempfile.TemporaryDirectory() as folder:
        llama(4, 1024).save_pretrained(folder)
        model = transformers.AutoModelForCausalLM.from_pretrained(folder, device_map={"": 0}, quantization_config=
            transformers.BitsAndBytesConfig(load_in_4bit=True, bnb_4bit_quant_type="nf4",
                                            bnb_4bit_compute_dtype=torch.bfloat16))
        model = lora(peft.prepare_model_for_kbit_training(model))
        train_with_transformers(model, bf16=True, optim="paged_adamw_8bit", gradient_checkpointing=True)


# ---- others ------------------------------------------------------------------------------------------------------

def lightning():
    import lightning as L
    import torch
    import torch.nn.functional as F

    class Module(L.LightningModule):
        def __init__(self):
            super().__init__()
            self.net = trained_with_adam(torch.nn.Sequential(torch.nn.Linear(1024, 2048), torch.nn.ReLU(),
                                                             torch.nn.Linear(2048, 1000)))

        def training_step(self, batch, _number):
            loss = F.cross_entropy(self.net(batch[0]), batch[1])
            self.log("loss", loss, prog_bar=True)
            return loss

        def validation_step(self, batch, _number):
            self.log("accuracy", (self.net(batch[0]).argmax(1) == batch[1]).float().mean())

        def configure_optimizers(self):
            return torch.optim.AdamW(self.parameters())

    data = torch.utils.data.TensorDataset(torch.randn(256, 1024), torch.randint(0, 1000, (256,)))
    loader = torch.utils.data.DataLoader(data, batch_size=64)
    with tempfile.TemporaryDirectory() as folder:
        L.Trainer(max_epochs=2, precision="bf16-mixed", accelerator="gpu", devices=1, logger=False, default_root_dir=folder,
                  enable_checkpointing=False, gradient_clip_val=1.0).fit(Module(), loader, loader)


def detection():
    import torch
    import torchvision
    model = torchvision.models.detection.fasterrcnn_mobilenet_v3_large_320_fpn(weights=None, weights_backbone=None,
                                                                               num_classes=10).cuda()
    optimizer = torch.optim.SGD([one for one in model.parameters() if one.requires_grad], lr=0.01, momentum=0.9)
    holds(3 * FP32 * parameters(model, True))
    for _ in range(3):
        images = [torch.randn(3, 240, 320).cuda() for _ in range(2)]
        targets = [{"boxes": torch.tensor([[10., 10, 90, 90], [50, 60, 200, 180]]).cuda(),
                    "labels": torch.tensor([1, 4]).cuda()} for _ in range(2)]
        loss = sum(model(images, targets).values())
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        print(loss.item())


def yolo():
    import numpy
    import PIL.Image
    import ultralytics
    with tempfile.TemporaryDirectory() as folder:
        for kind in ("images", "labels"):
            os.makedirs(f"{folder}/{kind}")
        for number in range(8):
            PIL.Image.fromarray(numpy.random.randint(0, 255, (160, 160, 3), "uint8")).save(f"{folder}/images/{number}.png")
            with open(f"{folder}/labels/{number}.txt", "w", encoding="utf-8") as file:
                file.write("0 0.5 0.5 0.4 0.4\n1 0.25 0.25 0.2 0.3\n")
        with open(f"{folder}/data.yaml", "w", encoding="utf-8") as file:
            file.write(f"path: {folder}\ntrain: images\nval: images\nnames: [one, two]\n")
        model = ultralytics.YOLO("yolov8n.yaml")
        holds(parameters(model.model) * FP32 * 3)
        model.train(data=f"{folder}/data.yaml", epochs=1, batch=4, imgsz=160, device=0, workers=0, plots=False, amp=False,
                    project=folder, verbose=False)


def deepspeed_stage(stage):
    import deepspeed
    import torch
    os.environ.update(RANK="0", WORLD_SIZE="1", LOCAL_RANK="0", MASTER_ADDR="127.0.0.1", MASTER_PORT="0")
    model = torch.nn.Sequential(*[torch.nn.Linear(1024, 1024) for _ in range(8)])
    holds(parameters(model) * (2 + 12))  # weights in 16 bits; their copy and Adam's state in 32
    engine, *_ = deepspeed.initialize(model=model, model_parameters=model.parameters(), config={
        "train_micro_batch_size_per_gpu": 8, "bf16": {"enabled": True}, "zero_optimization": {"stage": stage},
        "optimizer": {"type": "AdamW", "params": {"lr": 1e-4, "torch_adam": True}}})
    for _ in range(4):
        loss = engine(torch.randn(8, 1024, device="cuda", dtype=torch.bfloat16)).float().pow(2).mean()
        engine.backward(loss)
        engine.step()
        print(loss.item())


def deepspeed_2():
    deepspeed_stage(2)


def deepspeed_3():
    deepspeed_stage(3)


def torchao_quantized():
    import torch
    from torchao.quantization import Int8WeightOnlyConfig, quantize_
    model = torch.nn.Sequential(*[torch.nn.Linear(2048, 2048) for _ in range(8)]).to("cuda", torch.bfloat16)
    quantize_(model, Int8WeightOnlyConfig())
    holds(8 * 2048 * 2048)
    with torch.no_grad():
        print(model(torch.randn(16, 2048, device="cuda", dtype=torch.bfloat16)).shape)


def xformers_attention():
    import torch
    import xformers.ops
    q, k, v = (torch.randn(2, 1024, 8, 64, device="cuda", dtype=torch.float16, requires_grad=True) for _ in range(3))
    holds(3 * 2 * q.numel() * 2)
    xformers.ops.memory_efficient_attention(q, k, v, attn_bias=xformers.ops.LowerTriangularMask()).sum().backward()


def keras_fit():
    import keras
    import numpy
    model = keras.Sequential([keras.Input((32, 32, 3)), keras.layers.Conv2D(32, 3, activation="relu"),
                              keras.layers.MaxPooling2D(), keras.layers.Flatten(), keras.layers.Dense(512, activation="relu"),
                              keras.layers.Dropout(0.2), keras.layers.Dense(10)])
    holds(model.count_params() * ADAM)
    model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=["accuracy"])
    model.fit(numpy.random.rand(128, 32, 32, 3).astype("float32"), numpy.random.randint(0, 10, 128), batch_size=32, epochs=1,
              verbose=2)


def jax_training():
    import jax
    import jax.numpy as jnp
    weights = [jnp.ones((1024, 1024)) * 0.01 for _ in range(4)]
    holds(2 * 4 * FP32 * 1024 * 1024)

    @jax.jit
    def step(weights, x):
        def loss(weights):
            y = x
            for one in weights:
                y = jax.nn.relu(y @ one)
            return (y ** 2).mean()

        value, gradients = jax.value_and_grad(loss)(weights)
        return value, [one - 0.1 * gradient for one, gradient in zip(weights, gradients)]

    assert jax.devices()[0].platform == "gpu"
    for _ in range(3):
        value, weights = step(weights, jnp.ones((64, 1024)))
    print(float(value))


if __name__ == "__main__":
    globals()[sys.argv[1]]()
    tell("came to", "the end")
