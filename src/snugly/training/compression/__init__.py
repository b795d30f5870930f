"""Smaller models to train: channels removed, or a small model taught by a large one.

Both change what is trained (`changes-training`), so nothing here happens by itself.

    channels    which channels have to go together: sets that are joined as the graph is followed
    following   every layer of a model in its order, models inside it included
    tracing     what the layers do to channels, collected: an anatomy of the model
    rules       layers with weights; `shapes`, those without; `merging`, those that join branches
    ranking     which channels matter least, by what criterion
    rebuilding  the smaller model, made anew, with what is left of the weights
    plan        what is saved, said before anything runs
    pruning     `pruning_plan` and `prune`
    distiller   `Distiller`, a model of Keras; its methods stand in `distilling`
    matching    whether a teacher can teach a student
    softening   what a student is to learn from a teacher's outputs
"""
