"""The programs: which model, how large, with which inputs.

A model of transformers is named by its family, `llama`, one of diffusers by its class. Sizes come
from TINY by the names of the configuration's parameters, since these are much the same in all
families; what does not fit is said beside the family.
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable
from pathlib import Path

import numpy as np

# ===--- configurations ---===

HIDDEN, HEADS, LAYERS, VOCABULARY, LENGTH, IMAGE = 32, 4, 2, 99, 10, 32

# By the names of a configuration's parameters. What is not here keeps the family's own value.
SIZES: dict[object, str] = {
    HIDDEN: """
        hidden_size d_model n_embd embed_dim embedding_size emb_dim dim model_dim hidden_dim
        decoder_hidden_size encoder_hidden_size projection_dim text_embed_dim cross_attention_dim
        bottleneck_size true_hidden_size output_dim proj_size d_inner_size attention_hidden_size
    """,
    LAYERS: """
        num_hidden_layers n_layer n_layers num_layers encoder_layers decoder_layers
        num_encoder_layers num_decoder_layers decoder_num_hidden_layers encoder_num_hidden_layers
        num_blocks num_key_value_heads num_kv_heads encoder_num_key_value_heads
        decoder_num_key_value_heads num_experts_per_tok num_experts_per_token moe_k eos_token_id
        sep_token_id
    """,
    HEADS: """
        num_attention_heads n_head n_heads num_heads encoder_attention_heads decoder_attention_heads
        decoder_num_attention_heads encoder_num_attention_heads num_experts num_local_experts
        n_routed_experts moe_num_experts
    """,
    HIDDEN // HEADS: "head_dim d_kv attention_head_dim kv_channels patch_size",
    2 * HIDDEN: """
        intermediate_size ffn_dim encoder_ffn_dim decoder_ffn_dim d_ff n_inner d_inner
        ffn_hidden_size dim_feedforward moe_intermediate_size shared_expert_intermediate_size
        decoder_intermediate_size encoder_intermediate_size shared_intermediate_size hidden_dim_ff
        ff_dim max_position_embeddings n_positions n_ctx max_seq_len max_source_positions
        max_target_positions
    """,
    IMAGE // 2: "num_mel_bins",
    VOCABULARY: "vocab_size",
    3: "num_channels num_labels mask_token_id",
    1: """
        bos_token_id cls_token_id decoder_start_token_id forced_eos_token_id forced_bos_token_id
    """,
    0: "pad_token_id",
}
TINY: dict[str, object] = {name: size for size, names in SIZES.items() for name in names.split()}
TINY |= {"image_size": IMAGE, "use_cache": False}


def tiny(config_class: type, **given: object) -> object:
    """The configuration in TINY's sizes. `given` go before, in a dict for one within."""
    parameters = inspect.signature(config_class.__init__).parameters
    values = {}
    for name, parameter in parameters.items():
        default = parameter.default
        if name in TINY and not isinstance(default, (list, tuple)):
            values[name] = TINY[name]
        if "drop" in name and isinstance(default, float):
            values[name] = 0.0  # what is left out by chance is not the same in both
        if "drop" in name and isinstance(default, (list, tuple)):
            values[name] = [0.0] * len(default)
    for name, inner in (getattr(config_class, "sub_configs", None) or {}).items():
        if name in parameters and "Auto" not in inner.__name__:
            within = given.pop(name, {})
            values[name] = tiny(inner, **within).to_dict() if isinstance(within, dict) else within
    config = config_class(**(values | given))
    config.use_cache = False
    return config


# ===--- inputs ---===


def generator() -> np.random.Generator:
    return np.random.default_rng(0)


def tokens(*shape: int) -> np.ndarray:
    """No special ones, which are the first."""
    return generator().integers(5, VOCABULARY - 5, shape).astype(np.int64)


def numbers(*shape: int) -> np.ndarray:
    return generator().normal(size=shape).astype(np.float32)


def padding(batch: int = 2, length: int = LENGTH) -> np.ndarray:
    """The mask of two sentences, the second of which is shorter."""
    mask = np.ones((batch, length), np.int64)
    mask[1:, -3:] = 0
    return mask


def text() -> dict:
    return {"input_ids": tokens(2, LENGTH), "attention_mask": padding()}


def text_and_labels() -> dict:
    return {**text(), "labels": tokens(2, LENGTH)}


def image() -> dict:
    return {"pixel_values": numbers(2, 3, IMAGE, IMAGE)}


def image_and_labels() -> dict:
    return {**image(), "labels": np.array([0, 2])}


def text_to_text() -> dict:
    return {**text(), "labels": tokens(2, 7)}


def boxes() -> np.ndarray:
    """Boxes of words on a page, corners in their order."""
    corners = generator().integers(0, 400, (2, LENGTH, 4))
    corners[..., 2:] += 400
    return corners.astype(np.int64)


def images_in_text(count: int) -> dict:
    """A text in which each image is `count` tokens of its own kind, 98."""
    ids = np.concatenate([np.full((2, count), 98), tokens(2, LENGTH)], 1)
    return {
        "input_ids": ids,
        "attention_mask": padding(2, count + LENGTH),
        "labels": np.where(ids == 98, -100, ids),
        **image(),
    }


def ids(count: int) -> np.ndarray:
    """Places of the parts of a square picture."""
    side = int(count**0.5)
    rows, columns = np.divmod(np.arange(count), side)
    return np.stack([np.zeros(count), rows, columns], 1).astype(np.float32)


def sizes() -> dict:
    return {
        "original_size": np.array([[8.0, 8], [16, 8]], np.float32),
        "target_size": np.array([[8.0, 8], [8, 8]], np.float32),
        "crop_coords": np.array([[0.0, 0], [2, 1]], np.float32),
    }


SMALL_LLAMA = {
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "vocab_size": 99,
    "max_position_embeddings": 64,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "use_cache": False,
}
SMALL_VIT = {
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "image_size": 32,
    "patch_size": 8,
    "projection_dim": 32,
    "attention_dropout": 0.0,
}


def convert(value, tensor: Callable):
    """Tensors instead of arrays."""
    if isinstance(value, (list, tuple)):
        return type(value)(convert(part, tensor) for part in value)
    if isinstance(value, dict):
        return {name: convert(part, tensor) for name, part in value.items()}
    return tensor(value) if isinstance(value, np.ndarray) else value


# ===--- families ---===


@dataclasses.dataclass(frozen=True)
class Family:
    """A model, how large it is, and with what it is called."""

    library: str
    model: str  # the name of its class
    config: Callable
    inputs: Callable[[], dict]
    options: dict = dataclasses.field(default_factory=dict)


FAMILIES: dict[str, Family] = {}


def transformer(
    name: str,
    inputs: Callable[[], dict] | None = None,
    model: str = "",
    options: dict | None = None,
    **config,
) -> None:
    """Adds a family of transformers; without a model the first of those that it is known for."""
    from transformers.models.auto import configuration_auto, modeling_auto

    family = name.replace("_", "-") if name not in configuration_auto.CONFIG_MAPPING_NAMES else name
    if not model:
        for mapping, usual in HEADS_OF_MODELS.items():
            model = getattr(modeling_auto, f"MODEL_FOR_{mapping}_MAPPING_NAMES").get(family)
            if model:
                inputs = inputs or usual
                break
        else:
            model = modeling_auto.MODEL_MAPPING_NAMES[family]

    def made():
        import transformers

        return tiny(
            getattr(transformers, configuration_auto.CONFIG_MAPPING_NAMES[family]), **config
        )

    FAMILIES[name] = Family(
        "transformers",
        model,
        made,
        inputs or text,
        {"return_dict": False} if options is None else options,
    )


def diffuser(name: str, inputs: Callable[[], dict], options: dict | None = None, **config) -> None:
    """Adds a model of diffusers."""
    FAMILIES[name] = Family(
        "diffusers",
        name,
        lambda: dict(config),
        inputs,
        {"return_dict": False} if options is None else options,
    )


HEADS_OF_MODELS = {
    "CAUSAL_LM": text_and_labels,
    "SEQ_TO_SEQ_CAUSAL_LM": text_to_text,
    "MASKED_LM": text_and_labels,
    "IMAGE_CLASSIFICATION": image_and_labels,
}

# Language models that TINY's sizes fit.
LANGUAGE = """
    albert arcee bart bert_generation big_bird bigbird_pegasus biogpt blenderbot
    blenderbot_small bloom camembert canine cohere cohere2 convbert ctrl deberta deberta_v2
    diffllama distilbert doge dpr electra ernie ernie4_5 ernie4_5_moe esm evolla exaone4 falcon
    falcon_mamba flaubert flava flex_olmo funnel fuyu gemma gemma2 glm glm4 glm4_moe gpt2
    gpt_bigcode gpt_neox gpt_neox_japanese granite granitemoe granitemoeshared helium
    hunyuan_v1_dense hunyuan_v1_moe ibert  layoutlm led lfm2 llama longformer m2m_100
    mamba marian markuplm mbart megatron_bert minimax ministral mistral mixtral modernbert
    modernbert_decoder moshi mpnet mpt mra mt5 mvp nemotron nllb_moe nystromformer olmo olmo2
    olmo3 olmoe opt ovis2 pegasus pegasus_x persimmon phi phi3 phimoe plbart
    prophetnet qwen2 qwen2_moe qwen3 qwen3_moe qwen3_next rembert roberta
    roberta_prelayernorm roformer rwkv seamless_m4t seamless_m4t_v2 seed_oss smollm3 splinter
    squeezebert starcoder2 tapas trocr vaultgemma visual_bert xglm xlm xlm_roberta
    xlm_roberta_xl xlnet jetmoe stablelm yoso xlstm
"""
for name in LANGUAGE.split():
    transformer(name)

# Those that need a word more.
transformer("bert", model="BertModel")
T5 = {"decoder_start_token_id": 0}
transformer("t5", **T5)
transformer("longt5", **T5)
transformer("switch_transformers", **T5)
transformer("gptj", rotary_dim=4, n_inner=64)
transformer("codegen", rotary_dim=4, n_inner=64)
transformer("gpt_neo", attention_types=[[["global", "local"], 1]])
transformer("fnet", lambda: {"input_ids": tokens(2, LENGTH), "labels": tokens(2, LENGTH)})
transformer(
    "fsmt", lambda: {**text(), "labels": tokens(2, LENGTH)}, src_vocab_size=99, tgt_vocab_size=99
)
transformer("roc_bert", shape_vocab_size=30, pronunciation_vocab_size=30)
transformer("xmod", languages=["en_XX"], default_language="en_XX")
transformer("mamba2", num_heads=8, head_dim=8, state_size=8, n_groups=1, chunk_size=4)
transformer(
    "bamba",
    mamba_n_heads=8,
    mamba_d_head=8,
    mamba_d_state=8,
    mamba_n_groups=1,
    mamba_chunk_size=4,
    attn_layer_indices=[1],
)
transformer(
    "falcon_h1",
    mamba_d_ssm=64,
    mamba_n_heads=8,
    mamba_d_head=8,
    mamba_d_state=8,
    mamba_n_groups=1,
    mamba_chunk_size=4,
)
transformer(
    "granitemoehybrid",
    mamba_n_heads=8,
    mamba_d_head=8,
    mamba_d_state=8,
    mamba_n_groups=1,
    mamba_chunk_size=4,
    layer_types=["mamba", "attention"],
)
transformer(
    "jamba", use_mamba_kernels=False, mamba_dt_rank=4, attn_layer_period=2, attn_layer_offset=1
)
transformer("apertus")
transformer(
    "deepseek_v2",
    q_lora_rank=8,
    kv_lora_rank=8,
    qk_nope_head_dim=8,
    qk_rope_head_dim=8,
    v_head_dim=8,
    num_key_value_heads=4,
    n_group=1,
    topk_group=1,
    first_k_dense_replace=1,
    num_experts_per_tok=2,
)
transformer("dots1", n_group=1, topk_group=1, n_shared_experts=1, first_k_dense_replace=1)
transformer("luke", entity_vocab_size=20, entity_emb_size=32)
transformer(
    "perceiver",
    d_latents=32,
    num_latents=8,
    num_blocks=1,
    num_self_attends_per_block=2,
    num_self_attention_heads=4,
    num_cross_attention_heads=4,
    inputs=lambda: {
        "inputs": tokens(2, 64),
        "attention_mask": padding(2, 64),
        "labels": tokens(2, 64),
    },
)
transformer("lilt", lambda: {**text(), "bbox": boxes()}, hidden_size=48)
transformer(
    "layoutlmv3",
    lambda: {**text(), "bbox": boxes(), "pixel_values": numbers(2, 3, IMAGE, IMAGE)},
    coordinate_size=4,
    shape_size=8,
    input_size=IMAGE,
)
transformer(
    "speech_to_text",
    lambda: {"input_features": numbers(2, 24, 16), "decoder_input_ids": tokens(2, 7)},
    input_feat_per_channel=16,
    conv_channels=32,
)
transformer(
    "whisper",
    lambda: {"input_features": numbers(2, 16, 40), "labels": tokens(2, 7)},
    model="WhisperForConditionalGeneration",
    max_source_positions=20,
)
transformer(
    "moonshine",
    lambda: {"input_values": numbers(2, 1600), "decoder_input_ids": tokens(2, 7)},
    encoder_num_key_value_heads=4,
    decoder_num_key_value_heads=4,
)

# Images.
VISION = {"num_labels": 3}
for name in ["beit", "dinov2", "dinov2_with_registers", "ijepa", "vit_msn"]:
    transformer(name, image_and_labels, **VISION)
# With labels mindone takes the loss of a language model: loss/loss_utils.py:128 has no other.
transformer("vit", image, model="ViTForImageClassification", **VISION)
transformer("deit", image_and_labels, model="DeiTForImageClassification", **VISION)
transformer(
    "audio_spectrogram_transformer",
    lambda: {"input_values": numbers(2, 32, 16)},
    model="ASTModel",
    max_length=32,
)
STAGES = {"hidden_sizes": [16, 32], "depths": [1, 2], **VISION}
FOUR = {"hidden_sizes": [16, 32, 32, 48], "depths": [1, 1, 1, 1], **VISION}
transformer("resnet", embedding_size=16, **STAGES)
transformer("regnet", embedding_size=16, groups_width=8, **STAGES)
transformer("convnext", num_stages=2, layer_scale_init_value=0.5, **STAGES)
transformer("convnextv2", num_stages=2, **STAGES)
transformer("poolformer", layer_scale_init_value=0.5, **FOUR)
transformer("segformer", num_attention_heads=[1, 2, 2, 4], **FOUR)
transformer("pvt", num_attention_heads=[1, 2, 2, 4], patch_sizes=[4, 2, 2, 2], **FOUR)
transformer("pvt_v2", num_attention_heads=[1, 2, 2, 4], **FOUR)
transformer("glpn", image, model="GLPNModel", **{**FOUR, "num_attention_heads": [1, 2, 2, 4]})
transformer(
    "swin", embed_dim=16, depths=[2, 2], num_heads=[2, 4], window_size=4, patch_size=2, **VISION
)
transformer(
    "swinv2",
    embed_dim=16,
    depths=[2, 2],
    num_heads=[2, 4],
    window_size=4,
    patch_size=2,
    pretrained_window_sizes=[0, 0],
    **VISION,
)
transformer(
    "swin2sr",
    image,
    model="Swin2SRForImageSuperResolution",
    embed_dim=16,
    depths=[2, 2],
    num_heads=[2, 4],
    window_size=4,
    patch_size=1,
    image_size=16,
)
transformer(
    "focalnet", embed_dim=16, patch_size=4, focal_levels=[2, 2], focal_windows=[3, 3], **STAGES
)
transformer("mobilenet_v1", depth_multiplier=0.25, **VISION)
transformer("mobilenet_v2", depth_multiplier=0.25, **VISION)
transformer(
    "mobilevit",
    hidden_sizes=[16, 24, 32],
    neck_hidden_sizes=[8, 8, 16, 16, 24, 32, 64],
    patch_size=2,
    image_size=64,
    inputs=lambda: {"pixel_values": numbers(2, 3, 64, 64), "labels": np.array([0, 2])},
    **VISION,
)
transformer(
    "mobilevitv2",
    width_multiplier=0.25,
    patch_size=2,
    image_size=64,
    inputs=lambda: {"pixel_values": numbers(2, 3, 64, 64), "labels": np.array([0, 2])},
    **VISION,
)
transformer("efficientnet", width_coefficient=0.25, depth_coefficient=0.3, hidden_dim=320, **VISION)
transformer(
    "hiera",
    image_and_labels,
    embed_dim=16,
    depths=[1, 1],
    num_heads=[1, 2],
    image_size=[32, 32],
    patch_size=[7, 7],
    masked_unit_size=[4, 4],
    query_stride=[2, 2],
    embed_dim_multiplier=2.0,
    num_query_pool=1,
    **VISION,
)
transformer(
    "textnet",
    **VISION,
    stem_num_channels=3,
    stem_out_channels=16,
    conv_layer_kernel_sizes=[[[3, 3]], [[3, 1]], [[1, 3]], [[3, 3]]],
    conv_layer_strides=[[1], [2], [2], [1]],
    hidden_sizes=[16, 16, 24, 24, 32],
)
transformer(
    "hgnet_v2",
    embedding_size=16,
    depths=[1, 1, 1, 1],
    hidden_sizes=[16, 24, 32, 48],
    stem_channels=[3, 8, 16],
    stage_in_channels=[16, 16, 24, 32],
    stage_mid_channels=[8, 8, 8, 8],
    stage_out_channels=[16, 24, 32, 48],
    stage_num_blocks=[1, 1, 1, 1],
    stage_numb_of_layers=[2, 2, 2, 2],
    **VISION,
)
transformer("dinov3_vit", image, model="DINOv3ViTModel", num_register_tokens=2)
transformer(
    "dinov3_convnext",
    image,
    options={},
    model="DINOv3ConvNextModel",
    hidden_sizes=[16, 24, 32, 48],
    depths=[1, 1, 1, 1],
    layer_scale_init_value=0.5,
)
transformer(
    "vit_mae",
    lambda: {**image(), "noise": numbers(2, 16)},
    model="ViTMAEForPreTraining",
    options={},
)
transformer("vitdet", image, model="VitDetModel", window_block_indices=[0], window_size=2)
transformer(
    "vivit",
    lambda: {"pixel_values": numbers(2, 4, 3, IMAGE, IMAGE)},
    model="VivitModel",
    num_frames=4,
    tubelet_size=[2, 8, 8],
)
transformer(
    "videomae",
    lambda: {"pixel_values": numbers(2, 4, 3, IMAGE, IMAGE)},
    model="VideoMAEModel",
    num_frames=4,
)
transformer(
    "timesformer",
    lambda: {"pixel_values": numbers(2, 4, 3, IMAGE, IMAGE)},
    model="TimesformerModel",
    num_frames=4,
)
transformer("yolos", image, model="YolosModel", image_size=[32, 32])

# Texts and images.
PICTURED = {"vision_config": {}, "text_config": {}}
for name, model in {
    "clip": "CLIPModel",
    "siglip": "SiglipModel",
    "chinese_clip": "ChineseCLIPModel",
    "altclip": "AltCLIPModel",
    "groupvit": "GroupViTModel",
    "blip": "BlipModel",
    "metaclip_2": "MetaClip2Model",
    "aimv2": "Aimv2Model",
    "clipseg": "CLIPSegModel",
}.items():
    transformer(name, lambda: {**text(), **image()}, model=model)
transformer(
    "git", lambda: {**text(), **image(), "labels": tokens(2, LENGTH)}, model="GitForCausalLM"
)
transformer(
    "owlvit",
    lambda: {"input_ids": tokens(2, LENGTH), "attention_mask": padding(), **image()},
    model="OwlViTModel",
)
transformer(
    "paligemma",
    lambda: {**images_in_text(16), "token_type_ids": np.zeros((2, 26), np.int64)},
    model="PaliGemmaForConditionalGeneration",
    image_token_index=98,
    image_token_id=98,
    text_config={"model_type": "gemma", **SMALL_LLAMA},
    vision_config={"model_type": "siglip_vision_model", **SMALL_VIT},
    projection_dim=32,
)
transformer(
    "vipllava",
    lambda: images_in_text(16),
    model="VipLlavaForConditionalGeneration",
    image_token_index=98,
    text_config={"model_type": "llama", **SMALL_LLAMA},
    vision_config={"model_type": "clip_vision_model", **SMALL_VIT},
    vision_feature_layers=[-1, -2],
)

# Sound.
SOUND = {
    "conv_dim": [16, 16],
    "conv_stride": [5, 4],
    "conv_kernel": [10, 8],
    "num_feat_extract_layers": 2,
    "num_conv_pos_embeddings": 8,
    "num_conv_pos_embedding_groups": 2,
    "apply_spec_augment": False,
}


def sound() -> dict:
    return {"input_values": numbers(2, 800)}


for name, model in {
    "wav2vec2": "Wav2Vec2Model",
    "hubert": "HubertModel",
    "wavlm": "WavLMModel",
    "unispeech": "UniSpeechModel",
    "unispeech_sat": "UniSpeechSatModel",
    "wav2vec2_conformer": "Wav2Vec2ConformerModel",
    "sew": "SEWModel",
    "sew_d": "SEWDModel",
}.items():
    transformer(name, sound, model=model, **SOUND)
transformer(
    "wav2vec2_bert",
    lambda: {"input_features": numbers(2, 20, 16)},
    model="Wav2Vec2BertModel",
    feature_projection_input_dim=16,
    apply_spec_augment=False,
    position_embeddings_type="relative_key",
    left_max_position_embeddings=4,
    right_max_position_embeddings=4,
)
transformer(
    "encodec",
    lambda: {"input_values": numbers(2, 1, 640)},
    model="EncodecModel",
    num_filters=4,
    hidden_size=16,
    codebook_size=16,
    codebook_dim=16,
    num_lstm_layers=1,
    upsampling_ratios=[4, 2],
)
transformer(
    "speecht5",
    lambda: {"input_values": numbers(2, 8, 32), "decoder_input_values": numbers(2, 4, 32)},
    model="SpeechT5Model",
)


# ===--- models of diffusers ---===


def steps(batch: int = 2) -> np.ndarray:
    return np.array([3, 700][:batch])


def noisy(channels: int = 4, size: int = 16) -> dict:
    return {"sample": numbers(2, channels, size, size), "timestep": steps()}


def latent(channels: int = 4, size: int = 8) -> dict:
    return {"hidden_states": numbers(2, channels, size, size), "timestep": steps()}


UNET = {
    "block_out_channels": (16, 32),
    "layers_per_block": 1,
    "norm_num_groups": 4,
    "sample_size": 16,
}
CROSS = {
    "down_block_types": ("CrossAttnDownBlock2D", "DownBlock2D"),
    "up_block_types": ("UpBlock2D", "CrossAttnUpBlock2D"),
    "cross_attention_dim": 32,
    "attention_head_dim": 8,
}
VAE = {
    "block_out_channels": (16, 32),
    "layers_per_block": 1,
    "norm_num_groups": 4,
    "latent_channels": 4,
    "down_block_types": ("DownEncoderBlock2D",) * 2,
    "up_block_types": ("UpDecoderBlock2D",) * 2,
}
DIT = {
    "num_attention_heads": 4,
    "attention_head_dim": 8,
    "num_layers": 2,
    "in_channels": 4,
    "sample_size": 8,
    "patch_size": 2,
}


def sentence(width: int = 32, length: int = 6) -> np.ndarray:
    return numbers(2, length, width)


def sample(*shape):
    return lambda: {"sample": numbers(*shape)}


diffuser(
    "UNet2DModel",
    lambda: noisy(3),
    down_block_types=("DownBlock2D", "AttnDownBlock2D"),
    up_block_types=("AttnUpBlock2D", "UpBlock2D"),
    **UNET,
)
diffuser(
    "UNet2DConditionModel",
    lambda: {**noisy(), "encoder_hidden_states": sentence()},
    **UNET,
    **CROSS,
)
diffuser(
    "UNet3DConditionModel",
    lambda: {
        "sample": numbers(2, 4, 3, 16, 16),
        "timestep": steps(),
        "encoder_hidden_states": sentence(),
    },
    **UNET,
    down_block_types=("CrossAttnDownBlock3D", "DownBlock3D"),
    up_block_types=("UpBlock3D", "CrossAttnUpBlock3D"),
    cross_attention_dim=32,
    attention_head_dim=8,
)
diffuser(
    "UNetSpatioTemporalConditionModel",
    lambda: {
        "sample": numbers(2, 3, 8, 16, 16),
        "timestep": steps(),
        "encoder_hidden_states": sentence(32, 1),
        "added_time_ids": np.array([[6.0, 127, 0], [7, 10, 1]], np.float32),
    },
    block_out_channels=(32, 64),
    layers_per_block=1,
    down_block_types=("CrossAttnDownBlockSpatioTemporal", "DownBlockSpatioTemporal"),
    up_block_types=("UpBlockSpatioTemporal", "CrossAttnUpBlockSpatioTemporal"),
    cross_attention_dim=32,
    num_attention_heads=(2, 4),
    addition_time_embed_dim=8,
    projection_class_embeddings_input_dim=24,
    num_frames=3,
)
diffuser(
    "ControlNetModel",
    lambda: {
        **noisy(),
        "encoder_hidden_states": sentence(),
        "controlnet_cond": numbers(2, 3, 32, 32),
    },
    block_out_channels=(16, 32),
    layers_per_block=1,
    norm_num_groups=4,
    down_block_types=("CrossAttnDownBlock2D", "DownBlock2D"),
    cross_attention_dim=32,
    attention_head_dim=8,
    conditioning_embedding_out_channels=(8, 16),
)
diffuser("AutoencoderKL", sample(2, 3, 16, 16), **VAE)
diffuser("VQModel", sample(2, 3, 16, 16), **{**VAE, "num_vq_embeddings": 16})
diffuser(
    "AutoencoderTiny",
    sample(2, 3, 32, 32),
    encoder_block_out_channels=(8, 8),
    decoder_block_out_channels=(8, 8),
    num_encoder_blocks=(1, 1),
    num_decoder_blocks=(1, 1),
)
diffuser(
    "AutoencoderDC",
    sample(2, 3, 16, 16),
    latent_channels=4,
    attention_head_dim=8,
    encoder_block_types=("ResBlock", "EfficientViTBlock"),
    decoder_block_types=("ResBlock", "EfficientViTBlock"),
    encoder_block_out_channels=(16, 16),
    decoder_block_out_channels=(16, 16),
    encoder_layers_per_block=(1, 1),
    decoder_layers_per_block=(1, 1),
    encoder_qkv_multiscales=((), (5,)),
    decoder_qkv_multiscales=((), (5,)),
    upsample_block_type="pixel_shuffle",
    downsample_block_type="pixel_unshuffle",
)
diffuser(
    "AutoencoderOobleck",
    sample(2, 2, 64),
    encoder_hidden_size=12,
    downsampling_ratios=[2, 4],
    channel_multiples=[1, 2],
    decoder_channels=12,
    decoder_input_channels=6,
)
diffuser(
    "AutoencoderKLTemporalDecoder",
    lambda: {"sample": numbers(2, 3, 16, 16), "num_frames": 2},
    block_out_channels=(32, 64),
    layers_per_block=1,
    latent_channels=4,
    down_block_types=("DownEncoderBlock2D",) * 2,
)
diffuser(
    "AutoencoderKLWan",
    sample(1, 3, 5, 16, 16),
    base_dim=4,
    z_dim=16,
    dim_mult=[1, 1],
    num_res_blocks=1,
    temperal_downsample=[True],
)
diffuser(
    "AutoencoderKLCogVideoX",
    sample(1, 3, 5, 16, 16),
    block_out_channels=(8, 8, 8, 8),
    latent_channels=4,
    layers_per_block=1,
    norm_num_groups=2,
)
diffuser(
    "AutoencoderKLLTXVideo",
    sample(1, 3, 9, 16, 16),
    latent_channels=8,
    block_out_channels=(8, 8, 8, 8),
    decoder_block_out_channels=(8, 8, 8, 8),
    layers_per_block=(1, 1, 1, 1, 1),
    decoder_layers_per_block=(1, 1, 1, 1, 1),
    spatio_temporal_scaling=(True, True, False, False),
    decoder_spatio_temporal_scaling=(True, True, False, False),
    patch_size=1,
)
diffuser(
    "DiTTransformer2DModel",
    lambda: {**latent(), "class_labels": np.array([1, 5])},
    **DIT,
    out_channels=8,
    num_embeds_ada_norm=10,
)
diffuser(
    "Transformer2DModel",
    lambda: {"hidden_states": numbers(2, 32, 8, 8), "encoder_hidden_states": sentence()},
    num_attention_heads=4,
    attention_head_dim=8,
    in_channels=32,
    norm_num_groups=4,
    num_layers=2,
    cross_attention_dim=32,
)
diffuser(
    "PixArtTransformer2DModel",
    lambda: {
        **latent(),
        "encoder_hidden_states": sentence(16),
        "added_cond_kwargs": {"aspect_ratio": None, "resolution": None},
    },
    **DIT,
    out_channels=8,
    cross_attention_dim=32,
    caption_channels=16,
    use_additional_conditions=False,
)
diffuser(
    "SD3Transformer2DModel",
    lambda: {**latent(), "encoder_hidden_states": sentence(), "pooled_projections": numbers(2, 16)},
    **DIT,
    out_channels=4,
    joint_attention_dim=32,
    caption_projection_dim=32,
    pooled_projection_dim=16,
    pos_embed_max_size=12,
    qk_norm="rms_norm",
    dual_attention_layers=(0,),
)
diffuser(
    "FluxTransformer2DModel",
    lambda: {
        "hidden_states": numbers(2, 16, 4),
        "timestep": np.array([0.3, 0.9], np.float32),
        "encoder_hidden_states": sentence(),
        "pooled_projections": numbers(2, 16),
        "img_ids": ids(16),
        "txt_ids": np.zeros((6, 3), np.float32),
    },
    in_channels=4,
    num_layers=1,
    num_single_layers=1,
    attention_head_dim=8,
    num_attention_heads=4,
    joint_attention_dim=32,
    pooled_projection_dim=16,
    axes_dims_rope=(2, 2, 4),
)
diffuser(
    "ChromaTransformer2DModel",
    lambda: {
        "hidden_states": numbers(2, 16, 4),
        "timestep": np.array([0.3, 0.9], np.float32),
        "encoder_hidden_states": sentence(),
        "img_ids": ids(16),
        "txt_ids": np.zeros((6, 3), np.float32),
    },
    in_channels=4,
    num_layers=1,
    num_single_layers=1,
    attention_head_dim=8,
    num_attention_heads=4,
    joint_attention_dim=32,
    axes_dims_rope=(2, 2, 4),
    approximator_num_channels=16,
    approximator_hidden_dim=16,
    approximator_layers=1,
)
diffuser(
    "SanaTransformer2DModel",
    lambda: {**latent(), "encoder_hidden_states": sentence(16)},
    in_channels=4,
    out_channels=4,
    num_attention_heads=4,
    attention_head_dim=8,
    num_layers=2,
    num_cross_attention_heads=4,
    cross_attention_head_dim=8,
    cross_attention_dim=32,
    caption_channels=16,
    sample_size=8,
)
diffuser(
    "AuraFlowTransformer2DModel",
    lambda: {
        "hidden_states": numbers(2, 4, 8, 8),
        "timestep": np.array([0.3, 0.9], np.float32),
        "encoder_hidden_states": sentence(),
    },
    sample_size=8,
    in_channels=4,
    num_mmdit_layers=1,
    num_single_dit_layers=1,
    attention_head_dim=8,
    num_attention_heads=4,
    joint_attention_dim=32,
    caption_projection_dim=32,
    out_channels=4,
    pos_embed_max_size=64,
)
diffuser(
    "CogVideoXTransformer3DModel",
    lambda: {
        "hidden_states": numbers(2, 2, 4, 8, 8),
        "timestep": steps(),
        "encoder_hidden_states": sentence(),
    },
    num_attention_heads=4,
    attention_head_dim=8,
    in_channels=4,
    out_channels=4,
    time_embed_dim=8,
    text_embed_dim=32,
    num_layers=2,
    sample_width=8,
    sample_height=8,
    sample_frames=5,
    max_text_seq_length=6,
)
diffuser(
    "CogView3PlusTransformer2DModel",
    lambda: {**latent(), "encoder_hidden_states": sentence(), **sizes()},
    in_channels=4,
    out_channels=4,
    num_layers=2,
    attention_head_dim=8,
    num_attention_heads=4,
    text_embed_dim=32,
    time_embed_dim=8,
    condition_dim=8,
    pos_embed_max_size=8,
    sample_size=8,
)
diffuser(
    "CogView4Transformer2DModel",
    lambda: {**latent(), "encoder_hidden_states": sentence(), **sizes()},
    in_channels=4,
    out_channels=4,
    num_layers=2,
    attention_head_dim=8,
    num_attention_heads=4,
    text_embed_dim=32,
    time_embed_dim=8,
    condition_dim=8,
    sample_size=8,
    rope_axes_dim=(8, 8),
)
diffuser(
    "LatteTransformer3DModel",
    lambda: {
        "hidden_states": numbers(2, 4, 2, 8, 8),
        "timestep": steps(),
        "encoder_hidden_states": sentence(),
    },
    **DIT,
    out_channels=8,
    cross_attention_dim=32,
    caption_channels=32,
    norm_type="ada_norm_single",
    norm_elementwise_affine=False,
    video_length=2,
    num_embeds_ada_norm=1000,
)
diffuser(
    "LTXVideoTransformer3DModel",
    lambda: {
        "hidden_states": numbers(2, 32, 4),
        "timestep": steps(),
        "encoder_hidden_states": sentence(16),
        "encoder_attention_mask": padding(2, 6),
        "num_frames": 2,
        "height": 4,
        "width": 4,
    },
    in_channels=4,
    out_channels=4,
    num_attention_heads=4,
    attention_head_dim=8,
    cross_attention_dim=32,
    num_layers=2,
    caption_channels=16,
)
diffuser(
    "MochiTransformer3DModel",
    lambda: {
        "hidden_states": numbers(2, 4, 2, 8, 8),
        "timestep": steps(),
        "encoder_hidden_states": sentence(16),
        "encoder_attention_mask": padding(2, 6) > 0,
    },
    in_channels=4,
    num_attention_heads=4,
    attention_head_dim=8,
    num_layers=2,
    pooled_projection_dim=16,
    text_embed_dim=16,
    time_embed_dim=8,
    max_sequence_length=6,
)
diffuser(
    "WanTransformer3DModel",
    lambda: {
        "hidden_states": numbers(2, 4, 2, 8, 8),
        "timestep": steps(),
        "encoder_hidden_states": sentence(16),
    },
    num_attention_heads=4,
    attention_head_dim=12,
    in_channels=4,
    out_channels=4,
    text_dim=16,
    freq_dim=16,
    ffn_dim=64,
    num_layers=2,
    rope_max_seq_len=32,
)
diffuser(
    "HunyuanVideoTransformer3DModel",
    lambda: {
        "hidden_states": numbers(2, 4, 2, 8, 8),
        "timestep": steps(),
        "encoder_hidden_states": sentence(16),
        "encoder_attention_mask": padding(2, 6),
        "pooled_projections": numbers(2, 8),
        "guidance": np.array([1000.0, 6000], np.float32),
    },
    in_channels=4,
    out_channels=4,
    num_attention_heads=4,
    attention_head_dim=8,
    num_layers=1,
    num_single_layers=1,
    num_refiner_layers=1,
    patch_size=2,
    text_embed_dim=16,
    pooled_projection_dim=8,
    rope_axes_dim=(2, 2, 4),
)
diffuser(
    "PriorTransformer",
    lambda: {
        "hidden_states": numbers(2, 8),
        "timestep": steps(),
        "proj_embedding": numbers(2, 8),
        "encoder_hidden_states": numbers(2, 7, 8),
    },
    num_attention_heads=2,
    attention_head_dim=4,
    num_layers=2,
    embedding_dim=8,
    num_embeddings=7,
    additional_embeddings=4,
)
diffuser(
    "Lumina2Transformer2DModel",
    lambda: {
        "hidden_states": numbers(2, 4, 8, 8),
        "timestep": np.array([0.3, 0.9], np.float32),
        "encoder_hidden_states": sentence(),
        "encoder_attention_mask": padding(2, 6) > 0,
    },
    sample_size=8,
    in_channels=4,
    hidden_size=32,
    num_layers=1,
    num_refiner_layers=1,
    num_attention_heads=4,
    num_kv_heads=2,
    multiple_of=16,
    axes_dim_rope=(2, 2, 4),
    axes_lens=(32, 32, 32),
    cap_feat_dim=32,
)
diffuser(
    "QwenImageTransformer2DModel",
    lambda: {
        "hidden_states": numbers(2, 16, 16),
        "encoder_hidden_states": sentence(16),
        "encoder_hidden_states_mask": padding(2, 6),
        "timestep": np.array([0.3, 0.9], np.float32),
        "img_shapes": [(1, 4, 4)] * 2,
        "txt_seq_lens": [6, 6],
    },
    in_channels=16,
    out_channels=4,
    num_layers=1,
    attention_head_dim=8,
    num_attention_heads=4,
    joint_attention_dim=16,
    axes_dims_rope=(2, 2, 4),
)
diffuser(
    "StableAudioDiTModel",
    lambda: {
        "hidden_states": numbers(2, 4, 10),
        "timestep": steps(),
        "encoder_hidden_states": sentence(16),
        "global_hidden_states": numbers(2, 1, 8),
        "rotary_embedding": (numbers(11, 4), numbers(11, 4)),
    },
    sample_size=10,
    in_channels=4,
    num_layers=2,
    attention_head_dim=8,
    num_attention_heads=4,
    num_key_value_attention_heads=2,
    out_channels=4,
    cross_attention_dim=16,
    time_proj_dim=8,
    global_states_input_dim=8,
    cross_attention_input_dim=16,
)
diffuser(
    "TransformerTemporalModel",
    lambda: {"hidden_states": numbers(4, 32, 4, 4), "num_frames": 2},
    num_attention_heads=4,
    attention_head_dim=8,
    in_channels=32,
    norm_num_groups=4,
)
diffuser(
    "UVit2DModel",
    lambda: {
        "input_ids": tokens(2, 8, 8),
        "encoder_hidden_states": sentence(),
        "pooled_text_emb": numbers(2, 16),
        "micro_conds": np.ones((2, 5), np.float32),
    },
    options={},
    hidden_size=32,
    cond_embed_dim=16,
    micro_cond_encode_dim=4,
    micro_cond_embed_dim=20,
    encoder_hidden_size=32,
    vocab_size=99,
    codebook_size=98,
    in_channels=32,
    block_out_channels=32,
    num_res_blocks=1,
    block_num_heads=4,
    num_hidden_layers=2,
    num_attention_heads=4,
    intermediate_size=64,
    sample_size=8,
)
diffuser(
    "T2IAdapter",
    lambda: {"x": numbers(2, 3, 32, 32)},
    options={},
    channels=[16, 32],
    num_res_blocks=1,
    downscale_factor=8,
)
diffuser(
    "UNet1DModel",
    lambda: {"sample": numbers(2, 2, 64), "timestep": steps()},
    sample_size=64,
    in_channels=2,
    out_channels=2,
    extra_in_channels=16,
    block_out_channels=(32, 32, 64),
)


# ===--- where a program itself is not PyTorch's ---===

# By the family: what mindone does, the file, and in its line what proves it.
WEIGHT_NORM = (
    "assigns the normalised weight: no gradient comes to what it is made of",
    "utils/weight_norm.py",
    "ops.assign(self.weight_norm_cell.weight",
)
FLOAT16 = (
    "computes attention in float16",
    "diffusers/models/layers_compat.py",
    "query.to(ms.float16)",
)
BADDBMM = (
    "adds a mask of four dimensions to three by `baddbmm`, which PyTorch refuses too",
    "diffusers/models/attention_processor.py",
    "attention_scores = mint.baddbmm(",
)
DIFFERS = {
    "jetmoe": (
        "shifts the labels, and its loss again",
        "transformers/models/jetmoe/modeling_jetmoe.py",
        "shift_labels = labels[..., 1:]",
    ),
    "yoso": (
        "differentiates the function whose gradient PyTorch's `YosoCumulation` approximates",
        "transformers/models/yoso/modeling_yoso.py",
        "class YosoCumulation(mindspore.nn.Cell)",
    ),
    "stablelm": (
        "keeps the last logits alone, with labels too",
        "transformers/models/stablelm/modeling_stablelm.py",
        "logits_to_keep = 1",
    ),
    "swin2sr": (
        "writes over the input that the gradient needs",
        "transformers/mindspore_adapter/nn/LeakyReLU.py",
        "input.copy_(",
    ),
    "speecht5": (
        "calls `nn.Dense` as one calls `mint.nn.Linear`",
        "transformers/models/speecht5/modeling_speecht5.py",
        "self.k_proj = nn.Dense(embed_dim, embed_dim, bias=bias)",
    ),
    "wavlm": (
        "has a convolution without PyTorch's bias (`has_bias` of `nn.Conv1d` is false by itself)",
        "transformers/models/wavlm/modeling_wavlm.py",
        "class WavLMPositionalConvEmbedding(",
    ),
    "wav2vec2_conformer": (
        "has a convolution without PyTorch's bias (`has_bias` of `nn.Conv1d` is false by itself)",
        "transformers/models/wav2vec2_conformer/modeling_wav2vec2_conformer.py",
        "class Wav2Vec2ConformerPositionalConvEmbedding(",
    ),
    **dict.fromkeys(("HunyuanVideoTransformer3DModel", "Lumina2Transformer2DModel"), BADDBMM),
    "sew_d": (
        "writes over the softmax that the gradient needs, where PyTorch has a gradient of its own",
        "transformers/models/sew_d/modeling_sew_d.py",
        "output.masked_fill_(rmask, 0)",
    ),
    "fnet": (
        "takes NumPy's Fourier transform, which has no gradient",
        "transformers/models/fnet/modeling_fnet.py",
        "partial(np.fft.fftn",
    ),
    "layoutlmv3": (
        "differentiates the relative positions, which PyTorch's does not",
        "transformers/models/layoutlmv3/modeling_layoutlmv3.py",
        "rel_pos = self.rel_pos_bias.weight.t()[rel_pos]",
    ),
    "dinov2_with_registers": (
        "takes the registers for parts of the picture",
        "transformers/models/dinov2_with_registers/modeling_dinov2_with_registers.py",
        "patch_tokens = sequence_output[:, 1:]",
    ),
    "gpt_bigcode": (
        "hands `nn.Dropout` what to drop as what to keep",
        "transformers/models/gpt_bigcode/modeling_gpt_bigcode.py",
        "self.drop = nn.Dropout(config.embd_pdrop)",
    ),
    "LTXVideoTransformer3DModel": (
        "has weights in a normalisation in which PyTorch's has none",
        "diffusers/models/transformers/transformer_ltx.py",
        "self.norm_out = mint.nn.LayerNorm(inner_dim, eps=1e-6)",
    ),
    "AutoencoderKLWan": (
        "does not scale the scores of attention, and computes it in float16",
        "diffusers/models/autoencoders/autoencoder_kl_wan.py",
        'FlashAttentionScore(1, input_layout="BNSD")',
    ),
    "QwenImageTransformer2DModel": (
        "leaves the rotary embedding out of the gradient, and computes attention in float16",
        "diffusers/models/transformers/transformer_qwenimage.py",
        "with ms._no_grad():",
    ),
    "MochiTransformer3DModel": (
        "computes attention in float16",
        "diffusers/models/embeddings.py",
        "q.to(ms.float16)",
    ),
    **dict.fromkeys(
        ("ChromaTransformer2DModel", "FluxTransformer2DModel", "WanTransformer3DModel"), FLOAT16
    ),
    **dict.fromkeys(
        ("AutoencoderOobleck", "encodec", "hubert", "sew", "unispeech", "unispeech_sat"),
        WEIGHT_NORM,
    ),
    "wav2vec2": WEIGHT_NORM,
}

# What MindSpore's compiler does not take as Python does, with or without the library.
DIFFERS_IN_GRAPHS = {
    "distilbert": (
        "has a variable in one branch alone, which the compiler refuses",
        "transformers/models/distilbert/modeling_distilbert.py",
        "sa_output, sa_weights = sa_output",
    ),
    "vit": (
        "takes tensors from objects of Python's, through which a graph has no gradient",
        "transformers/models/vit/modeling_vit.py",
        "sequence_output = encoder_outputs.last_hidden_state",
    ),
    **{
        name: (
            "writes its configuration: the compiler takes every branch by it, for any shapes",
            f"transformers/models/{name}/modeling_{name}.py",
            'self.config.problem_type = "regression"',
        )
        for name in ("convnext", "resnet")
    },
}


# What such a program does, so that it is not excused from anything else: an error that says so, or
# bounds of the differences of results and gradients; or one of several.
EXPECTED: dict[tuple[str, str], str | tuple[float, float] | list] = {
    ("gpt_bigcode", "float32"): "For 'Dropout', the 'keep_prob' must be a number",
    ("stablelm", "float32"): "input bacth_size should be equal to target batch_size",
    (
        "swin2sr",
        "float32",
    ): "modified by an inplace operation, which is the 0 's input of LeakyReLU",
    ("sew_d", "float32"): "modified by an inplace operation, which is the 0 's output of Softmax",
    ("speecht5", "float32"): "Dense.__init__() got an unexpected keyword argument 'bias'",
    ("LTXVideoTransformer3DModel", "float32"): "has no parameters norm_out.weight, norm_out.bias",
    ("distilbert", "graph"): "'sa_weights' is not defined in false branch",
    # It compiles for minutes, or stops in MindSpore's compiler.
    ("vit", "graph"): [(1e-4, 5), "The parameters number of the function is 3"],
    ("jetmoe", "float32"): (3e-2, 1e-2),
    ("dinov2_with_registers", "float32"): (0.5, 0.5),
    ("yoso", "float32"): (1e-4, 0.5),
    ("AutoencoderKLWan", "float32"): (0.2, 5),
    **{
        (name, "float32"): "has no parameters encoder.pos_conv_embed.conv.bias"
        for name in ("wavlm", "wav2vec2_conformer")
    },
    **{
        (name, "float32"): "addbmm"
        for name in ("HunyuanVideoTransformer3DModel", "Lumina2Transformer2DModel")
    },
    **{(name, "graph"): "input1.shape and input2.shape" for name in ("convnext", "resnet")},
    **{
        (name, "float32"): (1e-4, 5)
        for name in (
            *("encodec", "fnet", "hubert", "layoutlmv3", "sew", "unispeech", "unispeech_sat"),
            *("wav2vec2", "AutoencoderOobleck", "QwenImageTransformer2DModel"),
        )
    },
    **{
        (f"{name}Transformer{size}DModel", "float32"): (1e-3, 5e-3)
        for name, size in (("Chroma", 2), ("Flux", 2), ("Mochi", 3), ("Wan", 3))
    },
}


def proof(name: str, kind: str) -> str:
    """Where the program is not PyTorch's: the line in the mindone that is installed, or nothing."""
    differs = {"float32": DIFFERS, "graph": DIFFERS_IN_GRAPHS}.get(kind, {})
    if name not in differs:
        return ""
    import mindone

    sentence, path, code = differs[name]
    lines = (Path(mindone.__path__[0]) / path).read_text().splitlines()
    number = next(i for i, line in enumerate(lines, 1) if code in line)
    return f"{sentence}: `{path}:{number}`"


def is_expected(answer: dict) -> bool:
    """Whether a program that differs from PyTorch's does what it is known to do."""
    expected = EXPECTED[answer["name"], answer["kind"]]
    for one in expected if isinstance(expected, list) else [expected]:
        if isinstance(one, str):
            if one in answer.get("error", ""):
                return True
        elif "error" not in answer:
            forward, gradient = one
            return answer["forward"] <= forward and answer["gradient"] <= gradient
    return False
