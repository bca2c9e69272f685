//! Images that were allowed at run time, besides those of the configuration. The caller checks that the user may allow
//! them.

use crate::database::{Database, DatabaseError, Row, to_the_end, values};
use crate::edit::Edit;
use crate::page::{Page, PageSize};
use belljar_contract::id::UserId;
use belljar_contract::image::ImageReference;
use belljar_contract::label::Label;
use jiff::Timestamp;

/// The images of a database. Clones share it.
#[derive(Debug, Clone)]
pub struct Images {
    database: Database,
}

/// An image that may be run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AddedImage {
    /// Full reference of the image.
    pub image: ImageReference,
    /// Display name.
    pub name: Option<Label>,
    /// Time at which it was added.
    pub added_at: Timestamp,
    /// User who added it.
    pub added_by: UserId,
}

/// Result of adding an image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ImageAddition {
    /// The image was added.
    New(AddedImage),
    /// The image was allowed already; nothing has changed, not even its name.
    Known(AddedImage),
}

/// An image is not added.
#[derive(Debug, thiserror::Error)]
pub enum AddImageError {
    /// The maximum number of images is reached.
    #[error("there are {most} images, and no more may be there")]
    TooMany {
        /// Maximum number.
        most: u64,
    },
    /// The database has failed.
    #[error(transparent)]
    Database(#[from] DatabaseError),
}

/// Maximum number of images.
pub const MOST: u64 = 1_000;

const FIND: &str = "SELECT image_ref, name, added_at_ms, added_by FROM allowed_images WHERE image_ref = $1";

const LIST: &str = "SELECT image_ref, name, added_at_ms, added_by FROM allowed_images \
    WHERE image_ref > $1 ORDER BY image_ref LIMIT $2";

const COUNT: &str = "SELECT count(*) AS images FROM allowed_images";

const ADD: &str =
    "INSERT INTO allowed_images (image_ref, name, added_at_ms, added_by) VALUES ($1, $2, $3, $4)";

const REMOVE: &str = "DELETE FROM allowed_images WHERE image_ref = $1";

// === impl Images ===

impl Images {
    /// Creates the image list on a database.
    pub fn new(database: Database) -> Self {
        Self { database }
    }

    /// Allows an image. Adding it again changes nothing.
    ///
    /// # Errors
    /// [`AddImageError`]; it isn't added then, unless the database reports that the outcome is in doubt.
    pub async fn add(
        &self,
        image: ImageReference,
        name: Option<Label>,
        edit: Edit,
    ) -> Result<ImageAddition, AddImageError> {
        let database = self.database.clone();
        to_the_end(async move {
            let mut transaction = database.begin().await?;
            transaction.alone("allowed_images").await?;
            let whole = image.to_string();
            if let Some(known) = transaction.fetch(FIND, values![whole.as_str()]).await?.first() {
                return Ok(ImageAddition::Known(AddedImage::read(known)?));
            }
            let count = transaction.fetch(COUNT, values![]).await?;
            if count.first().map_or(Ok(0), |row| row.count("images"))? >= MOST {
                return Err(AddImageError::TooMany { most: MOST });
            }
            let Edit { by, at } = edit;
            let called = name.as_ref().map(|name| name.as_str().to_owned());
            transaction.execute(ADD, values![whole, called, at, by.as_str()]).await?;
            transaction.commit("image_add").await?;
            Ok(ImageAddition::New(AddedImage { image, name, added_at: at, added_by: by }))
        })
        .await
    }

    /// Removes an image from the list; returns true if it was there.
    ///
    /// # Errors
    /// [`DatabaseError`] when it can't be removed.
    pub async fn remove(&self, image: &ImageReference) -> Result<bool, DatabaseError> {
        let (database, whole) = (self.database.clone(), image.to_string());
        to_the_end(async move { Ok(database.write("image_remove", REMOVE, values![whole]).await? > 0) }).await
    }

    /// Returns the image if it was added.
    ///
    /// # Errors
    /// [`DatabaseError`] when that can't be read.
    pub async fn find(&self, image: &ImageReference) -> Result<Option<AddedImage>, DatabaseError> {
        let rows = self.database.fetch(FIND, values![image.to_string()]).await?;
        rows.first().map(AddedImage::read).transpose()
    }

    /// Lists the images after that one, by their full names.
    ///
    /// # Errors
    /// [`DatabaseError`] when they can't be read.
    pub async fn list(
        &self,
        after: Option<&ImageReference>,
        most: u32,
    ) -> Result<Page<AddedImage, ImageReference>, DatabaseError> {
        let size = PageSize::of(most);
        let after = after.map_or_else(String::new, ToString::to_string);
        let rows = self.database.fetch(LIST, values![after, size.to_fetch]).await?;
        let images = rows.iter().map(AddedImage::read).collect::<Result<_, _>>()?;
        Ok(Page::cut(images, size, |added: &AddedImage| added.image.clone()))
    }
}

// === impl AddedImage ===

impl AddedImage {
    fn read(row: &Row) -> Result<Self, DatabaseError> {
        Ok(Self {
            image: row.parsed("image_ref", ImageReference::parse)?,
            name: row.optionally_parsed("name", Label::parse)?,
            added_at: row.time("added_at_ms")?,
            added_by: row.parsed("added_by", UserId::parse)?,
        })
    }
}
