"""Models of transformers in float64: its code rounds norms, softmax and angles to float32 by name,
whatever a model's type is, and the judge of float64 results must not."""

import contextlib

import torch


@contextlib.contextmanager
def float64():
    """What asks for float32 inside gets float64."""
    replaced = [(torch, "float32", torch.float64), (torch, "float", torch.float64),
                (torch, "FloatTensor", torch.DoubleTensor),
                (torch.Tensor, "float", torch.Tensor.double)]
    before = [(place, name, getattr(place, name)) for place, name, _ in replaced]
    usual = torch.get_default_dtype()
    for place, name, other in replaced:
        setattr(place, name, other)
    torch.set_default_dtype(torch.float64)
    try:
        yield
    finally:
        for place, name, value in before:
            setattr(place, name, value)
        torch.set_default_dtype(usual)


def copy_of(model):
    """The same weights in a model that was built in float64. Call it, and the copy, in float64()."""
    config = type(model.config).from_dict(model.config.to_dict())
    config.dtype = None
    exact = type(model)(config).double()
    head, table = model.get_output_embeddings(), model.get_input_embeddings()
    if head is not None and head.weight is not getattr(table, "weight", None):
        exact.get_output_embeddings().weight = torch.nn.Parameter(head.weight.double())
    weights = {name: value.double() if value.is_floating_point() else value
               for name, value in model.state_dict().items()}
    exact.load_state_dict(weights)
    if getattr(config, "num_local_experts", 0):
        exact.set_experts_implementation("eager")  # the others have no float64
    return exact.eval()
