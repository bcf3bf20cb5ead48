"""Small tokenizers whose decoders are neither byte-level nor byte-fallback, trained on a sentence."""

from __future__ import annotations

from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

_TEXT = ["The quick brown fox doesn't jump over the lazy dog. Do you think so? Yes, he said, I'm sure it isn't."] * 5
_SPECIAL = ["[UNK]", "[CLS]", "[SEP]"]


def wordpiece() -> Tokenizer:
    """As BERT: `##` continues a word, and the decoder cleans up spaces before punctuation."""
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    tokenizer.train_from_iterator(_TEXT, trainers.WordPieceTrainer(vocab_size=120, special_tokens=_SPECIAL))
    return tokenizer


def metaspace() -> Tokenizer:
    """A Unigram model, and `▁` for spaces but the first."""
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.decoder = decoders.Metaspace()
    trainer = trainers.UnigramTrainer(vocab_size=90, special_tokens=_SPECIAL, unk_token="[UNK]")
    tokenizer.train_from_iterator(_TEXT, trainer)
    return tokenizer


def wordlevel() -> Tokenizer:
    """No decoder: tokens are joined with spaces."""
    tokenizer = Tokenizer(models.WordLevel(unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.train_from_iterator(_TEXT, trainers.WordLevelTrainer(vocab_size=60, special_tokens=_SPECIAL))
    return tokenizer


def bytes_first() -> Tokenizer:
    """Byte fallback whose decoder puts bytes together before it turns `▁` into spaces: an order of its own."""
    vocabulary = {f"<0x{byte:02X}>": byte for byte in range(256)}
    for word in ("\u2581", "\u2581Hello", "a", "\u2581is", "\ufffd", "[END]"):
        vocabulary[word] = len(vocabulary)
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=[], byte_fallback=True))
    tokenizer.decoder = decoders.Sequence(
        [decoders.ByteFallback(), decoders.Fuse(), decoders.Replace("\u2581", " "), decoders.Strip(" ", 1, 0)]
    )
    tokenizer.add_special_tokens(["[END]"])
    return tokenizer


SMALL_TOKENIZERS = (wordpiece, metaspace, wordlevel)
